/* bcryptprimitives.dll, which Wine 8 does not have: random bytes, as wheels written in Rust ask for them. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count) {
    return SystemFunction036(bytes, (ULONG)count);
}

/* python.exe: calls Py_Main of python311.dll. */
#include <windows.h>

int wmain(int count, wchar_t **words) {
    int (*run)(int, wchar_t **) = (void *)GetProcAddress(LoadLibraryW(L"python311.dll"), "Py_Main");
    return run ? run(count, words) : 120;
}

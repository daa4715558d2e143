/* The complex functions of ucrtbase.dll, which Wine 8 has only by name. NumPy calls one when it is imported;
   pixelpong computes nothing with complex numbers. All else is forwarded to Wine's own. */
#include <complex.h>

typedef struct { double re, im; } Double;
typedef struct { float re, im; } Float;

static double complex wide(Double z) { return __builtin_complex(z.re, z.im); }
static double complex widen(Float z) { return __builtin_complex((double)z.re, (double)z.im); }
static Double split(double complex z) { Double pair = {creal(z), cimag(z)}; return pair; }
static Float narrow(double complex z) { Float pair = {creal(z), cimag(z)}; return pair; }

#define TO_REAL(name) \
    double our_##name(Double z) { return name(wide(z)); } \
    double our_##name##l(Double z) { return name(wide(z)); } \
    float our_##name##f(Float z) { return name(widen(z)); }
#define TO_COMPLEX(name) \
    Double our_##name(Double z) { return split(name(wide(z))); } \
    Double our_##name##l(Double z) { return split(name(wide(z))); } \
    Float our_##name##f(Float z) { return narrow(name(widen(z))); }

TO_REAL(creal) TO_REAL(cimag) TO_REAL(cabs) TO_REAL(carg)
TO_COMPLEX(ccos) TO_COMPLEX(ccosh) TO_COMPLEX(cexp) TO_COMPLEX(clog) TO_COMPLEX(csin)
TO_COMPLEX(csinh) TO_COMPLEX(csqrt) TO_COMPLEX(ctan) TO_COMPLEX(ctanh)

Double our_cpow(Double a, Double b) { return split(cpow(wide(a), wide(b))); }
Double our_cpowl(Double a, Double b) { return split(cpow(wide(a), wide(b))); }
Float our_cpowf(Float a, Float b) { return narrow(cpow(widen(a), widen(b))); }
Double our__Cbuild(double re, double im) { Double pair = {re, im}; return pair; }
Double our__LCbuild(double re, double im) { Double pair = {re, im}; return pair; }
Float our__FCbuild(float re, float im) { Float pair = {re, im}; return pair; }

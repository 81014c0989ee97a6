// bcryptprimitives.dll, which Wine 8 (Debian 12) lacks. The Go runtime loads it
// at start for ProcessPrng and does not run without. Being the first thing a
// Go program calls, outside the loader's lock and before any procedure has been
// looked up, it is also the place to mend Wine for the program: see wine8.c.
#include "redirect.h"

void mend_wine(void);

// RtlGenRandom, advapi32.
BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);

static LONG mended;

__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *data, SIZE_T length) {
	if (!InterlockedExchange(&mended, 1)) mend_wine();
	return SystemFunction036(data, (ULONG)length) ? TRUE : FALSE;
}

#ifndef REDIRECT_H
#define REDIRECT_H
#define WIN32_LEAN_AND_MEAN
#include <winsock2.h>
#include <windows.h>

// redirect makes GetProcAddress(m, name) answer with to from now on, and sets
// *was to what it answered before. It sets *was first: another thread may call
// through the new entry at once. On failure nothing is changed and *was is 0.
void redirect(HMODULE m, const char *name, void *to, void **was);

#endif

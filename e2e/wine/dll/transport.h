#ifndef TRANSPORT_H
#define TRANSPORT_H
#define WIN32_LEAN_AND_MEAN
#define _WIN32_WINNT 0x0A00
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>

#define E_SERVER_UNAVAILABLE ((HRESULT)0x800706BA) // what a stopped HNS gives
#define E_CALL_FAILED ((HRESULT)0x800706BE)        // what an HNS gives that ends during the call

// ask sends one call to the fake HNS and waits for its answer. Returns the
// answer's body, terminated by NUL and to be freed, and its length. On failure
// it returns 0 and sets *hr. handle and id say nothing when they are 0.
char *ask(const char *op, ULONG64 handle, ULONG flags, const GUID *id, LPCWSTR *args, int nargs, int *len, HRESULT *hr);

#endif

// The client DLLs of the Windows host network service, computenetwork.dll (Hcn*)
// and vmcompute.dll (HNSCall), in one file that is installed under both names.
// Each call goes to the fake service, which answers
//
//	"HRESULT HANDLE P R\n" properties result
//
// P and R are the lengths of the two texts, or -1 for one that is not given.
//
// What github.com/Microsoft/hcsshim expects: strings that it gets are made by
// CoTaskMemAlloc, for it frees them; the properties are not NULL on success;
// a result that is not empty is an error, even beside S_OK.
#include "transport.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __declspec(dllexport) HRESULT WINAPI
typedef void *HCN;

static LPWSTR com_string(const char *s, int n) {
	static void *(WINAPI *alloc)(SIZE_T);
	int w = n ? MultiByteToWideChar(CP_UTF8, 0, s, n, 0, 0) : 0;
	LPWSTR r;
	if (!alloc) alloc = (void *)GetProcAddress(LoadLibraryA("api-ms-win-core-com-l1-1-0.dll"), "CoTaskMemAlloc");
	r = alloc((w + 1) * sizeof(WCHAR));
	if (w) MultiByteToWideChar(CP_UTF8, 0, s, n, r, w);
	r[w] = 0;
	return r;
}

static HRESULT call(const char *op, HCN h, const GUID *id, LPCWSTR *args, int nargs, HCN *out, LPWSTR *props, LPWSTR *res) {
	long hr;
	long long handle;
	int props_len, res_len, len;
	HRESULT failed;
	char *b, *p;

	if (out) *out = 0;
	if (props) *props = 0;
	if (res) *res = 0;
	b = ask(op, (ULONG64)(ULONG_PTR)h, 0, id, args, nargs, &len, &failed);
	if (!b) return failed;
	p = strchr(b, '\n');
	if (!p || sscanf(b, "%ld %lld %d %d", &hr, &handle, &props_len, &res_len) != 4) {
		free(b);
		return E_CALL_FAILED;
	}
	p++;
	if (out) *out = (HCN)(ULONG_PTR)handle;
	if (props && props_len >= 0) *props = com_string(p, props_len);
	if (props_len > 0) p += props_len;
	if (res && res_len >= 0) *res = com_string(p, res_len);
	free(b);
	return (HRESULT)hr;
}

#define NONE 0, 0
#define ONE(a) (LPCWSTR[]){a}, 1

// The calls that all kinds of object have. Creating differs.
#define OBJECT(Kind)                                                                                                   \
	API HcnEnumerate##Kind##s(LPCWSTR query, LPWSTR *list, LPWSTR *res) {                                              \
		return call("HcnEnumerate" #Kind "s", 0, 0, ONE(query), 0, list, res);                                         \
	}                                                                                                                  \
	API HcnOpen##Kind(const GUID *id, HCN *h, LPWSTR *res) { return call("HcnOpen" #Kind, 0, id, NONE, h, 0, res); }   \
	API HcnModify##Kind(HCN h, LPCWSTR settings, LPWSTR *res) {                                                        \
		return call("HcnModify" #Kind, h, 0, ONE(settings), 0, 0, res);                                                \
	}                                                                                                                  \
	API HcnQuery##Kind##Properties(HCN h, LPCWSTR query, LPWSTR *props, LPWSTR *res) {                                 \
		return call("HcnQuery" #Kind "Properties", h, 0, ONE(query), 0, props, res);                                   \
	}                                                                                                                  \
	API HcnDelete##Kind(const GUID *id, LPWSTR *res) { return call("HcnDelete" #Kind, 0, id, NONE, 0, 0, res); }       \
	API HcnClose##Kind(HCN h) { return call("HcnClose" #Kind, h, 0, NONE, 0, 0, 0); }

#define CREATE(Kind)                                                                                                   \
	API HcnCreate##Kind(const GUID *id, LPCWSTR settings, HCN *h, LPWSTR *res) {                                       \
		return call("HcnCreate" #Kind, 0, id, ONE(settings), h, 0, res);                                               \
	}

OBJECT(Network) CREATE(Network)
OBJECT(Namespace) CREATE(Namespace)
OBJECT(LoadBalancer) CREATE(LoadBalancer)
OBJECT(SdnRoute) CREATE(SdnRoute)
OBJECT(Endpoint)

API HcnCreateEndpoint(HCN network, const GUID *id, LPCWSTR settings, HCN *h, LPWSTR *res) {
	return call("HcnCreateEndpoint", network, id, ONE(settings), h, 0, res);
}

API HNSCall(LPCWSTR method, LPCWSTR path, LPCWSTR object, LPWSTR *response) {
	return call("HNSCall", 0, 0, (LPCWSTR[]){method, path, object}, 3, 0, response, 0);
}

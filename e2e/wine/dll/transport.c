// How these DLLs reach the fake HNS (package fakehns): one HTTP/1.0 request over
// loopback TCP for each call, to the address in FAKE_HNS_ADDR ("127.0.0.1:1234").
// There is no state here. The variable is read at each call, so that a test
// may set it at run time; without it, HNS is a service that is stopped.
//
//	POST /hns/HcnDeleteEndpoint?h=HANDLE&flags=FLAGS&id=GUID&pid=PID
//	body: the string arguments in UTF-8, each terminated by NUL
#include "transport.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static SOCKET dial(void) {
	char addr[64], *colon;
	DWORD n = GetEnvironmentVariableA("FAKE_HNS_ADDR", addr, sizeof addr);
	struct sockaddr_in to = {0};
	WSADATA data;
	SOCKET s;
	int yes = 1;

	if (n == 0 || n >= sizeof addr || !(colon = strrchr(addr, ':'))) return INVALID_SOCKET;
	*colon = 0;
	to.sin_family = AF_INET;
	to.sin_port = htons((u_short)atoi(colon + 1));
	to.sin_addr.s_addr = inet_addr(addr);
	WSAStartup(MAKEWORD(2, 2), &data);
	s = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
	if (s == INVALID_SOCKET) return s;
	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, (char *)&yes, sizeof yes);
	if (connect(s, (struct sockaddr *)&to, sizeof to)) {
		closesocket(s);
		return INVALID_SOCKET;
	}
	return s;
}

static BOOL send_all(SOCKET s, const char *p, int n) {
	while (n > 0) {
		int k = send(s, p, n, 0);
		if (k <= 0) return FALSE;
		p += k, n -= k;
	}
	return TRUE;
}

// receive_all reads until the peer closes. Returns 0 if it did so in disorder.
static char *receive_all(SOCKET s, int *len) {
	int cap = 8192, got = 0, k;
	char *b = malloc(cap + 1);
	while ((k = recv(s, b + got, cap - got, 0)) > 0) {
		got += k;
		if (got == cap) b = realloc(b, (cap *= 2) + 1);
	}
	if (k < 0) {
		free(b);
		return 0;
	}
	b[got] = 0;
	*len = got;
	return b;
}

// join makes one UTF-8 text of the arguments.
static char *join(LPCWSTR *args, int nargs, int *len) {
	int i, n = 0;
	char *b, *p;
	for (i = 0; i < nargs; i++) n += args[i] ? WideCharToMultiByte(CP_UTF8, 0, args[i], -1, 0, 0, 0, 0) : 1;
	b = p = malloc(n + 1);
	for (i = 0; i < nargs; i++) {
		if (args[i]) p += WideCharToMultiByte(CP_UTF8, 0, args[i], -1, p, n - (int)(p - b), 0, 0);
		else *p++ = 0;
	}
	*len = n;
	return b;
}

char *ask(const char *op, ULONG64 handle, ULONG flags, const GUID *id, LPCWSTR *args, int nargs, int *len, HRESULT *hr) {
	char head[512], guid[40] = "", *body, *answer = 0, *p;
	int n, total;
	SOCKET s = dial();

	*hr = E_SERVER_UNAVAILABLE;
	if (s == INVALID_SOCKET) return 0;
	*hr = E_CALL_FAILED;
	if (id)
		sprintf(guid, "%08lx-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x", id->Data1, id->Data2, id->Data3, id->Data4[0],
		        id->Data4[1], id->Data4[2], id->Data4[3], id->Data4[4], id->Data4[5], id->Data4[6], id->Data4[7]);
	body = join(args, nargs, &n);
	sprintf(head, "POST /hns/%.100s?h=%llu&flags=%lu&id=%s&pid=%lu HTTP/1.0\r\nHost: hns\r\nContent-Length: %d\r\n\r\n", op,
	        handle, flags, guid, GetCurrentProcessId(), n);
	if (send_all(s, head, (int)strlen(head)) && send_all(s, body, n)) answer = receive_all(s, &total);
	closesocket(s);
	free(body);
	if (!answer) return 0;
	// "HTTP/1.0 200 OK", fields, an empty line, the body.
	p = strstr(answer, "\r\n\r\n");
	if (!p || total < 12 || memcmp(answer + 9, "200", 3)) {
		free(answer);
		return 0;
	}
	p += 4;
	*len = total - (int)(p - answer);
	memmove(answer, p, *len + 1);
	*hr = S_OK;
	return answer;
}

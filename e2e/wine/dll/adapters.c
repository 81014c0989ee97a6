// GetAdaptersAddresses as a Windows node would answer it: the machine's own
// interfaces (of Linux, by Wine), then those that the fake HNS shows, one a line:
//
//	INDEX MTU UP MAC COMPARTMENT ADDRESSES NAME
//
// UP is 0 or 1, MAC 12 hexadecimal digits, ADDRESSES "10.0.0.1/24,fd00::1/64" or
// "-", and NAME the rest. A Linux interface could not be called "vEthernet (x)".
#include "transport.h"
#include <iphlpapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef ULONG(WINAPI *real_fn)(ULONG, ULONG, PVOID, PIP_ADAPTER_ADDRESSES, PULONG);

// What one adapter takes of the caller's buffer, at most.
struct entry {
	IP_ADAPTER_ADDRESSES adapter;
	WCHAR name[256], empty[4];
	char guid[48];
	struct {
		IP_ADAPTER_UNICAST_ADDRESS unicast;
		SOCKADDR_STORAGE addr;
	} addrs[8];
};

struct line {
	unsigned index, mtu, up, mac[6], compartment;
	char addrs[512];
	const char *name;
};

static BOOL parse(const char *s, struct line *l) {
	unsigned *m = l->mac;
	int name = 0;
	if (sscanf(s, "%u %u %u %2x%2x%2x%2x%2x%2x %u %511s %n", &l->index, &l->mtu, &l->up, m, m + 1, m + 2, m + 3, m + 4,
	           m + 5, &l->compartment, l->addrs, &name) != 11 || !name)
		return FALSE;
	l->name = s + name;
	return TRUE;
}

// visible says whether a call with these flags shows an adapter. One that has
// been moved to a container's compartment is no longer the host's.
static BOOL visible(const struct line *l, ULONG flags) {
	const ULONG all = GAA_FLAG_INCLUDE_ALL_COMPARTMENTS | GAA_FLAG_INCLUDE_ALL_INTERFACES;
	return l->compartment <= 1 || (flags & all) == all;
}

static int add_address(struct entry *e, int n, char *text) {
	IP_ADAPTER_UNICAST_ADDRESS *u = &e->addrs[n].unicast;
	SOCKADDR_STORAGE *a = &e->addrs[n].addr;
	char *slash = strchr(text, '/');

	if (!slash) return n;
	*slash = 0;
	u->Length = sizeof *u;
	u->OnLinkPrefixLength = (UINT8)atoi(slash + 1);
	u->Address.lpSockaddr = (SOCKADDR *)a;
	if (strchr(text, ':')) {
		a->ss_family = AF_INET6;
		inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)a)->sin6_addr);
		u->Address.iSockaddrLength = sizeof(struct sockaddr_in6);
	} else {
		a->ss_family = AF_INET;
		inet_pton(AF_INET, text, &((struct sockaddr_in *)a)->sin_addr);
		u->Address.iSockaddrLength = sizeof(struct sockaddr_in);
	}
	if (n) e->addrs[n - 1].unicast.Next = u;
	else e->adapter.FirstUnicastAddress = u;
	return n + 1;
}

static void fill(struct entry *e, struct line *l) {
	IP_ADAPTER_ADDRESSES *a = &e->adapter;
	char *next, *one;
	int i, n = 0;

	memset(e, 0, sizeof *e);
	a->Length = sizeof *a;
	a->IfIndex = a->Ipv6IfIndex = l->index;
	a->Mtu = l->mtu;
	a->IfType = IF_TYPE_ETHERNET_CSMACD;
	a->OperStatus = l->up ? IfOperStatusUp : IfOperStatusDown;
	a->CompartmentId = l->compartment;
	a->Luid.Info.IfType = a->IfType;
	a->Luid.Info.NetLuidIndex = l->index;
	a->PhysicalAddressLength = 6;
	for (i = 0; i < 6; i++) a->PhysicalAddress[i] = (BYTE)l->mac[i];
	MultiByteToWideChar(CP_UTF8, 0, l->name, -1, e->name, 255);
	a->FriendlyName = a->Description = e->name;
	a->DnsSuffix = e->empty;
	sprintf(e->guid, "{%08x-0000-0000-0000-000000000000}", l->index);
	a->AdapterName = e->guid;
	for (one = l->addrs; one && strcmp(one, "-") && n < 8; one = next) {
		next = strchr(one, ',');
		if (next) *next++ = 0;
		n = add_address(e, n, one);
	}
}

// wine8.c calls this in the place of GetAdaptersAddresses.
__declspec(dllexport) ULONG WINAPI FakeHnsAdapters(real_fn real, ULONG family, ULONG flags, PVOID reserved,
                                                   PIP_ADAPTER_ADDRESSES out, PULONG size) {
	IP_ADAPTER_ADDRESSES *last;
	ULONG n = 0, extra, left, r;
	struct entry *e;
	struct line l;
	HRESULT hr;
	int len;
	char *list = ask("Adapters", 0, flags, 0, 0, 0, &len, &hr), *p, *end;

	// HNS may be stopped; the adapters of the machine are there all the same.
	if (!list) return real(family, flags, reserved, out, size);
	for (p = list; *p; p++) n += *p == '\n';
	extra = n * sizeof *e + 16;
	left = out && *size > extra ? *size - extra : 0;
	r = real(family, flags, reserved, left ? out : 0, &left);
	if (r != ERROR_SUCCESS) {
		*size = left + extra;
		free(list);
		return r;
	}
	for (last = out; last->Next;) last = last->Next;
	e = (struct entry *)(((ULONG_PTR)out + *size - extra + 15) & ~(ULONG_PTR)15);
	for (p = list; (end = strchr(p, '\n')); p = end + 1) {
		*end = 0;
		if (!parse(p, &l) || !visible(&l, flags)) continue;
		fill(e, &l);
		last->Next = &e->adapter;
		last = last->Next;
		e++;
	}
	free(list);
	return ERROR_SUCCESS;
}

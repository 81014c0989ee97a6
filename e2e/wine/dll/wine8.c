// Where Wine 8 differs from Windows in a way that Go's standard library or
// go-winio stumbles over. Each function below stands in for one of a system DLL.
#include "redirect.h"

typedef LONG NTSTATUS;
#define STATUS_NOT_IMPLEMENTED ((NTSTATUS)0xC0000002)
#define STATUS_INVALID_INFO_CLASS ((NTSTATUS)0xC0000003)
#define STATUS_ACCESS_DENIED ((NTSTATUS)0xC0000022)
#define FILE_CREATE_DISPOSITION 2
#define FILE_PIPE_MESSAGE_TYPE 1

// os.RemoveAll, os.Root and the clean-up of t.TempDir delete a file by
// FileDispositionInformationEx. Wine answers "not implemented", for which Go
// has no other way; for "no such class", as an old Windows says, it has one.
typedef NTSTATUS(NTAPI *set_information_fn)(HANDLE, PVOID, PVOID, ULONG, ULONG);
static set_information_fn set_information;

static NTSTATUS NTAPI my_set_information(HANDLE file, PVOID iosb, PVOID info, ULONG length, ULONG class) {
	NTSTATUS s = set_information(file, iosb, info, length, class);
	return s == STATUS_NOT_IMPLEMENTED ? STATUS_INVALID_INFO_CLASS : s;
}

// Package net sends SIO_UDP_NETRESET to each UDP socket, which Wine refuses.
#define SIO_UDP_NETRESET 0x9800000F
typedef int(WINAPI *ioctl_fn)(SOCKET, DWORD, LPVOID, DWORD, LPVOID, DWORD, LPDWORD, LPWSAOVERLAPPED,
                              LPWSAOVERLAPPED_COMPLETION_ROUTINE);
static ioctl_fn ioctl;

static int WINAPI my_ioctl(SOCKET s, DWORD code, LPVOID in, DWORD in_len, LPVOID out, DWORD out_len, LPDWORD returned,
                           LPWSAOVERLAPPED overlapped, LPWSAOVERLAPPED_COMPLETION_ROUTINE done) {
	if (code == SIO_UDP_NETRESET) {
		if (returned) *returned = 0;
		return 0;
	}
	return ioctl(s, code, in, in_len, out, out_len, returned, overlapped, done);
}

// Named pipes differ in three ways.
//
// A name that exists: FILE_CREATE opens it, where Windows denies access. So it
// is tried first with another sharing mode, which fails when the name exists.
//
// FILE_PIPE_REJECT_REMOTE_CLIENTS: taken for message mode. The bit is dropped.
//
// The first instance: go-winio makes one without read and write access, which
// on Windows is not connected to and only reserves the name. Wine lets the first
// client connect to it, who then waits for ever (go-winio's issue 313 tells
// the same of Windows 7). A client of our own uses it up.
typedef NTSTATUS(NTAPI *create_pipe_fn)(PHANDLE, ULONG, PVOID, PVOID, ULONG, ULONG, ULONG, ULONG, ULONG, ULONG, ULONG,
                                        ULONG, ULONG, PLARGE_INTEGER);
typedef NTSTATUS(NTAPI *open_file_fn)(PHANDLE, ULONG, PVOID, PVOID, ULONG, ULONG);
static create_pipe_fn create_pipe;
static open_file_fn open_file;

static NTSTATUS NTAPI my_create_pipe(PHANDLE pipe, ULONG access, PVOID name, PVOID iosb, ULONG sharing,
                                     ULONG disposition, ULONG options, ULONG type, ULONG mode, ULONG completion,
                                     ULONG instances, ULONG in, ULONG out, PLARGE_INTEGER timeout) {
	const ULONG data = GENERIC_READ | GENERIC_WRITE | FILE_READ_DATA | FILE_WRITE_DATA;
	BOOL first = disposition == FILE_CREATE_DISPOSITION;
	HANDLE probe, client;
	ULONG_PTR ignored[2];
	NTSTATUS s;

	if (first) {
		ULONG other = sharing == FILE_SHARE_READ ? FILE_SHARE_READ | FILE_SHARE_WRITE : FILE_SHARE_READ;
		if (create_pipe(&probe, SYNCHRONIZE, name, iosb, other, disposition, options, 0, 0, 0, 1, 0, 0, timeout) < 0)
			return STATUS_ACCESS_DENIED;
		CloseHandle(probe);
	}
	s = create_pipe(pipe, access, name, iosb, sharing, disposition, options, type & FILE_PIPE_MESSAGE_TYPE, mode,
	                completion, instances, in, out, timeout);
	if (s >= 0 && first && !(access & data) &&
	    open_file(&client, GENERIC_READ | SYNCHRONIZE, name, ignored, FILE_SHARE_READ | FILE_SHARE_WRITE, 0) >= 0)
		CloseHandle(client);
	return s;
}

// A process of which the fake HNS is told sees the adapters of that besides the
// machine's own: see adapters.c, which is called for the whole answer.
typedef ULONG(WINAPI *adapters_fn)(ULONG, ULONG, PVOID, PVOID, PULONG);
typedef ULONG(WINAPI *more_adapters_fn)(adapters_fn, ULONG, ULONG, PVOID, PVOID, PULONG);
static adapters_fn adapters;

static ULONG WINAPI my_adapters(ULONG family, ULONG flags, PVOID reserved, PVOID out, PULONG size) {
	char any[2];
	if (GetEnvironmentVariableA("FAKE_HNS_ADDR", any, sizeof any)) {
		HMODULE m = LoadLibraryA("computenetwork.dll");
		more_adapters_fn more = m ? (more_adapters_fn)(void *)GetProcAddress(m, "FakeHnsAdapters") : 0;
		if (more) return more(adapters, family, flags, reserved, out, size);
	}
	return adapters(family, flags, reserved, out, size);
}

void mend_wine(void) {
	HMODULE nt = GetModuleHandleA("ntdll.dll"), ws = LoadLibraryA("ws2_32.dll"), ip = LoadLibraryA("iphlpapi.dll");

	if (!nt || !GetProcAddress(nt, "wine_get_version")) return;
	open_file = (open_file_fn)(void *)GetProcAddress(nt, "NtOpenFile");
	redirect(nt, "NtSetInformationFile", (void *)my_set_information, (void **)&set_information);
	redirect(nt, "NtCreateNamedPipeFile", (void *)my_create_pipe, (void **)&create_pipe);
	redirect(ws, "WSAIoctl", (void *)my_ioctl, (void **)&ioctl);
	redirect(ip, "GetAdaptersAddresses", (void *)my_adapters, (void **)&adapters);
}

// Package cniapi is what the CNI plugin and the agent say to each other: HTTP/1.1
// with JSON bodies over a unix socket that only root may open, or over a named
// pipe of Windows that only administrators and SYSTEM may open.
//
// The plugin translates between CNI's versions and these types; the agent never
// sees a CNI version. The package imports next to nothing, because the plugin
// is started anew for every call and pays for each import.
//
// # Confirmation of ADD
//
// A runtime that did not get a plugin's result treats ADD as failed and does
// not always send a DEL. So the plugin leaves the body of its ADD request open
// (Transfer-Encoding: chunked) and ends it only after it has printed the
// result. The agent undoes an ADD whose body breaks off instead of ending,
// whether that happens before or after its answer. A client that ends the body
// with the request, such as curl, thereby confirms in advance.
//
// The end is written, as HTTP has it, and nothing depends on closing one
// direction only: a pipe of bytes cannot.
package cniapi

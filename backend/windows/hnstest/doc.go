// Package hnstest is a Host Network Service in memory, for tests on any system.
// It acts as HNS was seen to act, and fails as HNS was seen to fail: calls that
// last, that never return, that fail with a code of HNS or succeed although they
// report a failure, objects that vanish, a service that restarts and forgets.
package hnstest

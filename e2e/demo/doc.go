// Demo shows podnet at work on this machine: six Pods on a real Open vSwitch,
// explained step by step. `make demo` builds and runs it.
//
// Everything happens in private network, mount and PID namespaces with a /tmp
// of their own, so that nothing can be left on the machine, not even by a
// SIGKILL; at the end the demo lists the machine again and compares.
package main

// Package async is the PortReadiness of platforms where the number of a port
// comes long after Add has returned: Windows, and Linux devices that somebody
// else makes later.
//
// It has two parts. [Queue] is a coalescing work queue of ports with batches
// and back-off, on client-go's delaying queue; any backend can use it to feed
// a [podnet.PortSink]. [Readiness] is the whole PortReadiness built on it:
// Begin promises, watches report names, workers call the sink, failures are
// tried again for ever, and after Config.NotReadyAfter the sink hears that the
// port is late and why.
package async

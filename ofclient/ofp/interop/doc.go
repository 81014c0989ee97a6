// Package interop holds the tests that set the codec against a real Open
// vSwitch and its ovs-ofctl. It is apart from package ofp so that the codec's
// own tests and fuzz targets need neither root nor Linux.
//
// "go test ./ofclient/ofp/interop -update" writes the captured frames to
// ../testdata/golden, where they seed the fuzz targets.
package interop

// Package build makes the programs and images that a cluster consists of, from
// package registries and this tree alone. What takes long is kept in a cache
// and made again only when its sources, the Go version or the flags change.
package build

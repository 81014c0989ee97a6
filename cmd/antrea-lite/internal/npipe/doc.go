// Package npipe listens on Windows named pipes that only administrators and
// SYSTEM may open.
package npipe

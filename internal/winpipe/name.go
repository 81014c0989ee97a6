// Package winpipe connects to named pipes of Windows, in particular to those of
// Open vSwitch for Windows, which has one wherever it has a unix socket on Linux.
//
// What connects needs Windows; how a pipe is named is tested anywhere.
package winpipe

import (
	"fmt"
	"strings"
)

const (
	prefix = `\\.\pipe\`
	// maxName is CreateNamedPipe's limit on the whole name.
	maxName = 256
)

// Name returns the full name of the pipe that path means: a pipe's own name
// (\\.\pipe\C:openvswitchvarrunopenvswitchdb.sock), or the path that Open
// vSwitch was given for a socket (C:\openvswitch\var\run\openvswitch\db.sock).
// Of the latter Open vSwitch makes the former by leaving out all slashes
// (lib/stream-windows.c).
func Name(path string) (string, error) {
	name := path
	if rest, ok := cutPrefix(path); ok {
		path = rest
	} else {
		path = strings.NewReplacer(`\`, "", "/", "").Replace(path)
	}
	if path == "" {
		return "", fmt.Errorf(`named pipe %q has no name: want \\.\pipe\NAME or the path that Open vSwitch has for the socket`, name)
	}
	if strings.ContainsAny(path, `\/`+"\x00") {
		return "", fmt.Errorf(`named pipe %q: the name after \\.\pipe\ holds no slashes; Open vSwitch leaves those of a path out`, name)
	}
	if full := prefix + path; len(full) <= maxName {
		return full, nil
	}
	return "", fmt.Errorf("named pipe %q: the name is longer than %d characters", name, maxName)
}

// cutPrefix takes the prefix of pipes of this computer off, as Windows reads it:
// in any case of letters, with slashes of either kind.
func cutPrefix(path string) (rest string, ok bool) {
	if len(path) < len(prefix) || !strings.EqualFold(strings.ReplaceAll(path[:len(prefix)], "/", `\`), prefix) {
		return "", false
	}
	return path[len(prefix):], true
}

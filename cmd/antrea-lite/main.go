// antrea-lite is the node agent and the tool to look at it; see `antrea-lite --help`.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/cli"
)

// version is set at build time: -ldflags '-X main.version=v1.2.3'.
var version string

func main() {
	if err := cli.New(version, os.Stdout).ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "antrea-lite:", err)
		os.Exit(1)
	}
}

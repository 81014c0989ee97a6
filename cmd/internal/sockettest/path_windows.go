package sockettest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// Path returns the name of a pipe that no other test uses.
func Path(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf(`\\.\pipe\podnet-%d-%x-%s`, os.Getpid(), time.Now().UnixNano(), strings.NewReplacer("/", "-", `\`, "-").Replace(t.Name()))
}

package oftest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/internal/nettest"
)

func TestMain(m *testing.M) {
	nettest.Main()
	goleak.VerifyTestMain(m)
}

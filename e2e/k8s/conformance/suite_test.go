// Package conformance is the upstream Kubernetes sig-network end-to-end tests
// as a test binary of their own: networking, Services, DNS and NetworkPolicy
// without the rest of e2e.test, which takes far longer to build.
package conformance

import (
	"context"
	"flag"
	"net/netip"
	"os"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	_ "k8s.io/component-base/logs/testinit"
	_ "k8s.io/kubernetes/test/e2e/common/network" // "Granular Checks"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/metrics/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
	"k8s.io/kubernetes/test/e2e/framework/testfiles"
	_ "k8s.io/kubernetes/test/e2e/network"
	manifests "k8s.io/kubernetes/test/e2e/testing-manifests"
)

func TestMain(m *testing.M) {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	testfiles.AddFileSource(manifests.GetE2ETestingManifestsFS())
	framework.AfterReadingAllFlags(&framework.TestContext)
	os.Exit(m.Run())
}

func TestNetwork(t *testing.T) {
	gomega.RegisterFailHandler(framework.Fail)
	ginkgo.BeforeSuite(findFamily)
	suite, reporter := framework.CreateGinkgoConfig()
	ginkgo.RunSpecs(t, "sig-network", suite, reporter)
}

// findFamily tells the framework the cluster's first address family, as e2e.test's
// own main does. The number of nodes has a flag.
func findFamily(ctx context.Context) {
	client, err := framework.LoadClientset()
	framework.ExpectNoError(err)
	svc, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	framework.ExpectNoError(err)
	addr, err := netip.ParseAddr(svc.Spec.ClusterIP)
	framework.ExpectNoError(err)
	framework.TestContext.IPFamily = "ipv4"
	if addr.Is6() {
		framework.TestContext.IPFamily = "ipv6"
	}
}

# podnet: what you can do here. `make` alone shows the goals.

GO        ?= go
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS   := -s -w -X main.version=$(VERSION)
BUILD     := CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)'
# Everything but the scenarios, which need the binaries and run in goals of their own.
UNIT      = $(shell $(GO) list ./... | grep -v -e /e2e$$ -e /e2e/wine$$ -e /e2e/k8s$$)
# A count, not a time: since the time limit of go test -fuzz may end a target in the
# middle of an input, which it then reports as a failure ("context deadline exceeded").
FUZZTIME  ?= 50000x
STATICCHECK := v0.8.2
# One scenario: make e2e RUN=TestRestart
RUN       ?= .
E2EFLAGS  ?= -test.v -test.timeout=20m
# The guest is emulated, so fewer Pods there.
KERNELFLAGS ?= $(E2EFLAGS) -pods 24
# What the datapath has no part in is left out there, unless it is asked for by RUN.
KERNELSKIP  = $(if $(filter .,$(RUN)),BoundedWait|DefaultSettings|ManyAdds|DelWhile(TheFlows|OpenFlow|TheDatabase)|AddIsRepeated|TwoSandboxesOfOnePodWait|LostPortStatus|PortInError|AreSwept|OpenFlowIsCut|GatewayPort,^$$)
# Those that differ by datapath: the kernel's flow cache and its conntrack.
PIPELINERUN ?= Uninstall|Neighbours
BENCHFLAGS ?=
DEMOFLAGS ?=
# Kubernetes: what connects the Pods (bridge, antrea-lite), and the clusters' shape.
NETWORK   ?= antrea-lite
NODES     ?= 2
DUAL      ?=
# A directory with a containerd to use, /usr/bin for Debian's. One is built when empty.
CONTAINERD ?=
K8SFLAGS  ?= -test.v -test.timeout=30m -test.parallel 4
# Upstream tests, a regular expression: make conformance FOCUS='Granular Checks: Pods'
FOCUS     ?=
CONFORMANCEFLAGS ?=

RUN_PACKAGES  := openvswitch-switch
# gcc and the C library's headers are what the race detector needs.
TEST_PACKAGES := $(RUN_PACKAGES) iproute2 iputils-ping ethtool procps gcc libc6-dev qemu-system-x86 busybox-static

# What runs Windows programs here, and the C compiler for their DLLs and -race.
WINE_PACKAGES := wine64 gcc-mingw-w64-x86-64-win32
WINE_TEST      = GOOS=windows GOARCH=amd64 $(GO) test -exec '$(CURDIR)/e2e/wine/wine-exec' -timeout 20m
# make wine WINEPKG=./podnet/...
WINEPKG       ?= ./...

K8S_PACKAGES  := $(RUN_PACKAGES) runc nftables iptables iproute2 procps busybox-static
IMAGE_PACKAGES := openvswitch-switch busybox-static
# What the images of the upstream tests consist of; the first line is enough for those of make e2e-k8s.
UPSTREAM_PACKAGES    := curl wget netcat-openbsd bind9-dnsutils
CONFORMANCE_PACKAGES := $(UPSTREAM_PACKAGES) conntrack nginx-light
KUBELAB       := bin/kubelab --containerd='$(CONTAINERD)'

PEER          := github.com/containernetworking/plugins
PEER_VERSION  = $(shell $(GO) list -m -f '{{.Version}}' $(PEER))

.DEFAULT_GOAL := help
# Random events against the real code in virtual time (docs/testing.md); a thousand of them are among the unit tests.
SCHEDULES  ?= 20000
SIMFLAGS   ?=

.PHONY: sim help deps run-deps build test demo bench fmt vet cross unit fuzz e2e e2e-kernel pipeline-kernel staticcheck clean \
	wine-deps wine wine-race
.PHONY: k8s-build k8s-up k8s-down k8s-kubectl e2e-k8s e2e-k8s-tunnels bench-k8s conformance

help: ## this text
	@echo 'podnet: Pods plugged into Open vSwitch. Start here:'
	@echo
	@echo '  sudo make demo    see it work on this machine, in under a minute once built'
	@echo '  sudo make test    everything that is checked but Kubernetes, in about 40 minutes on two cores'
	@echo
	@echo 'All goals:'
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo 'Useful settings:'
	@echo '  make e2e RUN=TestRestart              scenarios whose name matches'
	@echo '  make e2e-kernel RUN=TestRestart       the same on the kernel datapath, in a QEMU guest'
	@echo '  make bench BENCHFLAGS="-n 50 -o json" fewer Pods, figures for a program'
	@echo '  make fuzz FUZZTIME=10000000x           longer fuzzing of each target'
	@echo '  make sim SIMFLAGS="-seed 7"            one random schedule and its story'
	@echo
	@echo 'Root is needed for demo, bench, e2e and those unit tests that make network namespaces.'
	@echo 'All of it happens in private namespaces: nothing of it is seen on the machine.'

deps: ## install the Debian packages that test, demo and bench need
	@scripts/deps.sh $(TEST_PACKAGES)

run-deps:
	@scripts/deps.sh $(RUN_PACKAGES)

build: ## bin/antrea-lite (agent and tool) and bin/antrea-lite-cni (plugin), static
	@$(BUILD) -o bin/ ./cmd/antrea-lite ./cmd/antrea-lite-cni

demo: run-deps build ## six Pods on a real Open vSwitch, explained step by step
	@CGO_ENABLED=0 $(GO) build -trimpath -o bin/demo ./e2e/demo
	@bin/demo -agent bin/antrea-lite -cni bin/antrea-lite-cni $(DEMOFLAGS)

test: deps fmt vet cross staticcheck shellcheck unit fuzz e2e e2e-kernel pipeline-kernel wine-race e2e-wine ## everything but Kubernetes (make e2e-k8s)
	@echo '== all passed'

fmt: ## gofmt changes nothing
	@echo '== gofmt'
	@out=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$out" ] || { echo "gofmt would change:"; echo "$$out"; exit 1; }

vet: ## go vet for Linux and Windows
	@echo '== go vet (linux, windows)'
	@$(GO) vet ./...
	@GOOS=windows GOARCH=amd64 $(GO) vet ./...
	@GOOS=windows GOARCH=arm64 $(GO) vet ./...

cross: ## build for windows/amd64, windows/arm64 and linux/arm64
	@echo '== cross builds'
	@for t in windows/amd64 windows/arm64 linux/arm64; do \
		GOOS=$${t%/*} GOARCH=$${t#*/} CGO_ENABLED=0 $(GO) build ./... || exit 1; done

staticcheck: ## staticcheck finds nothing
	@echo '== staticcheck'
	@$(GO) run honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK) ./...

unit: deps ## unit tests with the race detector
	@echo '== unit tests (-race)'
	@$(GO) test -race -timeout 20m $(UNIT)

wine-deps:
	@scripts/deps.sh $(WINE_PACKAGES)

wine: wine-deps ## every package's tests as a Windows program, under Wine
	@echo '== unit tests, windows/amd64 under Wine'
	@$(WINE_TEST) $(WINEPKG)

wine-race: wine-deps ## the same with the race detector
	@echo '== unit tests, windows/amd64 under Wine (-race)'
	@CGO_ENABLED=1 CC=x86_64-w64-mingw32-gcc $(WINE_TEST) -race $(WINEPKG)

sim: ## random schedules in virtual time: SCHEDULES=100000, SIMFLAGS='-from 1' or '-seed 7'
	@echo '== simulation ($(SCHEDULES) schedules)'
	@$(GO) test -c -trimpath -o bin/sim.test ./e2e/sim
	@# A panic of the code under test ends the run; its goroutines name the seed.
	@cd e2e/sim && GODEBUG=tracebacklabels=1 ../../bin/sim.test -test.timeout 0 -test.run 'TestSchedules|TestOne' -test.v -schedules $(SCHEDULES) $(SIMFLAGS)

.PHONY: windows e2e-wine wine-hcsshim

wine-hcsshim: wine-deps ## hcsshim's own tests against the fake host network service
	@echo '== hcsshim, under Wine'
	@GO='$(GO)' scripts/hcsshim.sh

windows: ## the same two for Windows, bin/antrea-lite.exe and bin/antrea-lite-cni.exe
	@GOOS=windows GOARCH=amd64 $(BUILD) -o bin/ ./cmd/antrea-lite ./cmd/antrea-lite-cni

e2e-wine: deps wine-deps windows ## scenarios of a Windows node under Wine: fake HNS, real Open vSwitch
	@echo '== scenarios, windows/amd64 under Wine'
	@GOOS=windows GOARCH=amd64 $(BUILD) -o bin/ ./e2e/wine/piperelay
	@CGO_ENABLED=0 $(GO) test -c -trimpath -ldflags '-s -w' -o bin/e2e-wine.test ./e2e/wine
	@bin/e2e-wine.test -agent=bin/antrea-lite.exe -cni=bin/antrea-lite-cni.exe -relay=bin/piperelay.exe -prefix=e2e/wine/prefix \
		-test.run '$(RUN)' -test.parallel 4 $(E2EFLAGS)

fuzz: ## each fuzz target for FUZZTIME inputs
	@echo '== fuzz ($(FUZZTIME) each)'
	@GO='$(GO)' scripts/fuzz.sh $(FUZZTIME)

e2e: deps build ## scenarios against a real Open vSwitch, userspace datapath
	@echo '== scenarios, userspace datapath'
	@CGO_ENABLED=0 $(GO) test -c -trimpath -ldflags '-s -w' -o bin/e2e.test ./e2e
	@bin/e2e.test -datapath=netdev -agent=bin/antrea-lite -cni=bin/antrea-lite-cni -test.run '$(RUN)' $(E2EFLAGS)

e2e-kernel: deps build ## the same scenarios on the kernel datapath, in a QEMU guest
	@echo '== scenarios, kernel datapath (QEMU guest)'
	@CGO_ENABLED=0 $(GO) test -c -trimpath -ldflags '-s -w' -o bin/e2e.test ./e2e
	@$(GO) run ./e2e/kernelvm -timeout 25m \
		-file bin/antrea-lite=/usr/bin/antrea-lite -file bin/antrea-lite-cni=/usr/bin/antrea-lite-cni \
		bin/e2e.test -datapath=system -agent=/usr/bin/antrea-lite -cni=/usr/bin/antrea-lite-cni -test.run '$(RUN)' -test.skip '$(KERNELSKIP)' $(KERNELFLAGS)

pipeline-kernel: deps ## the pipeline's packet tests in the guest: PIPELINERUN='.' for all of them
	@echo '== pipeline, kernel datapath (QEMU guest)'
	@CGO_ENABLED=0 $(GO) test -c -trimpath -ldflags '-s -w' -o bin/podflows.test ./ofclient/podflows
	@$(GO) run ./e2e/kernelvm -timeout 25m -module nf_conntrack_netlink bin/podflows.test -datapath=system -test.run '$(PIPELINERUN)' $(E2EFLAGS)

bench: run-deps build ## ADD and DEL times, ours against bridge + host-local
	@CGO_ENABLED=0 $(GO) build -trimpath -o bin/bench ./e2e/bench
	@# By its own go.mod, so that ours need not know what the peer needs.
	@CGO_ENABLED=0 GOBIN=$(CURDIR)/bin/peer $(GO) install -trimpath -ldflags '-s -w' \
		$(PEER)/plugins/main/bridge@$(PEER_VERSION) $(PEER)/plugins/ipam/host-local@$(PEER_VERSION)
	@bin/bench -agent bin/antrea-lite -cni bin/antrea-lite-cni -peer bin/peer $(BENCHFLAGS)

.PHONY: images cni-plugins kind-up kind-down shellcheck

cni-plugins:
	@CGO_ENABLED=0 GOBIN=$(CURDIR)/.cache/k8s/cni $(GO) install -trimpath -ldflags '-s -w' $(PEER)/plugins/meta/portmap@$(PEER_VERSION)

images: build cni-plugins ## container images of agent and Open vSwitch in bin/images, made without Docker
	@scripts/deps.sh $(IMAGE_PACKAGES)
	@for i in agent openvswitch; do \
		$(GO) run ./deploy/mkimage --list deploy/images/$$i.list --tar bin/images/$$i.tar || exit 1; done
	@ls -l bin/images

kind-up: images ## a kind cluster with antrea-lite (needs Docker, kind and kubectl): DATAPATH=system
	@deploy/kind/up.sh

kind-down: ## delete that kind cluster
	@kind delete cluster --name antrea-lite

shellcheck: ## shellcheck finds nothing in the scripts
	@echo '== shellcheck'
	@scripts/deps.sh shellcheck
	@shellcheck $$(git ls-files '*.sh') .ci/run e2e/wine/wine-exec

k8s-build: build
	@scripts/deps.sh $(K8S_PACKAGES)
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/ ./e2e/k8s/kubelab ./e2e/k8s/testpod ./e2e/k8s/pause
	@$(KUBELAB) build

k8s-up: k8s-build ## a Kubernetes cluster on this machine: NODES=2 DUAL=1, see e2e/k8s/README.md
	@$(KUBELAB) up --nodes $(NODES) $(if $(DUAL),--dual)

k8s-down: ## end that cluster; nothing of it is left
	@bin/kubelab down

k8s-kubectl: ## kubectl in that cluster: ARGS="get pods -A"
	@bin/kubelab kubectl $(ARGS)

e2e-k8s: k8s-build ## scenarios in a Kubernetes cluster: NETWORK=bridge DUAL=1 RUN=TestPodsTalk
	@scripts/deps.sh $(UPSTREAM_PACKAGES)
	@$(KUBELAB) build --upstream
	@echo '== scenarios, Kubernetes ($(NETWORK))'
	@CGO_ENABLED=0 $(GO) test -c -trimpath -ldflags '-s -w' -o bin/k8s.test ./e2e/k8s
	@bin/k8s.test -root=. -network=$(NETWORK) -containerd='$(CONTAINERD)' $(if $(DUAL),-dual) -test.run '$(RUN)' $(K8SFLAGS)

bench-k8s: k8s-build ## Pod start latency in a cluster, ours beside the bridge plugin: BENCHFLAGS="--pods 20"
	@$(KUBELAB) bench $(BENCHFLAGS)

e2e-k8s-tunnels: ## those scenarios that a tunnel matters to, once with Geneve and once with VXLAN
	@for network in antrea-lite-encap antrea-lite-vxlan; do $(MAKE) --no-print-directory e2e-k8s NETWORK=$$network \
		RUN='^(TestPodsTalk|TestServices|TestNodesReachPods)$$' || exit 1; done

conformance: k8s-build ## all upstream sig-network tests that can run here, and docs/conformance.md; or FOCUS=REGEXP
	@scripts/deps.sh $(CONFORMANCE_PACKAGES)
	@$(KUBELAB) conformance --network $(NETWORK) $(if $(FOCUS),,--report docs/conformance.md) $(CONFORMANCEFLAGS) '$(FOCUS)'

clean: ## remove what the goals built, the cached kernel too
	rm -rf bin .cache

# "make" alone lists the targets. A target that needs another tool than Go checks all of its tools first:
# CONTRIBUTING.md lists them (lint and package also need a network, for staticcheck and nfpm).
# Root: test, race, bench, programs, test-action, fresh, containers, soak, storm, chaos, and the virtual machines.

.DEFAULT_GOAL := help
.PHONY: help build test race model fuzz lint cross generate demo bench soak storm chaos clib programs test-action fresh containers interop test-kernels kernels-short platforms platforms-short package release test-install image image-kubernetes test-package

ARCHES ?= amd64,arm64
ROCED ?= localhost/roced:latest

# Run by version, not from go.mod, so that it is no dependency of who uses the packages.
STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# What needs tools checks all of them first; so do the commands in hack.
need-%:
	@go run ./hack/tools $*

build: ## the binary, ./roced
	go build -o roced ./cmd/roced

test: ## all tests
	go test ./...
	go -C hack/plot test ./...
	go -C deploy/kubernetes test ./...

race: need-race ## all tests under the race detector, which look longer for what happens seldom
	ROCED_ROUNDS=all go test -race ./...

model: need-race ## a million random verbs calls against the model, under the race detector
	ROCED_MODEL=1000000 go test -race -count=1 -v -timeout 20m -run TestModel ./verbs/hca

fuzz: need-fuzz ## every fuzz target, a minute each
	hack/fuzz.sh 60s

# The packages with files that other tags bring. For the others to be looked at again finds nothing new.
TAGGED = $(shell grep -rlE '^//go:build .*(vlan|cards)' --include='*.go' . | xargs -n 1 dirname | sort -u)

lint: ## formatting, vet, staticcheck, tidy modules
	@test -z "$$(gofmt -l .)" || { echo "not formatted:"; gofmt -l .; exit 1; }
	go vet ./...
	go vet -tags vlan,cards $(TAGGED)
	$(STATICCHECK) ./...
	$(STATICCHECK) -tags vlan,cards $(TAGGED)
	go mod tidy -diff
	go -C hack/plot vet ./...
	cd hack/plot && $(STATICCHECK) ./... && go mod tidy -diff
	go -C deploy/kubernetes vet ./...
	cd deploy/kubernetes && $(STATICCHECK) ./... && go mod tidy -diff

cross: ## build for another processor, vet for one that is big-endian, and a program on the network in memory elsewhere
	GOARCH=arm64 go build ./...
	GOARCH=s390x go vet ./...
	GOOS=darwin go vet ./hack/structure/testdata/elsewhere

generate: need-generate ## the eBPF objects, with clang, llvm, libbpf-dev; and what follows from the table of numbers
	go generate ./...

demo: ## two hosts in two namespaces exchange messages
	go run ./cmd/roced demo

bench: ## roced beside kernel UDP and raw AF_XDP; writes and draws docs/bench.json
	go run ./hack/bench -output docs/bench.json
	go -C hack/plot run .

soak: need-race ## 20 million messages, every one accounted for, half of them between programs of several workers; then 10 minutes of hosts that change all the time, likewise
	ROCED_SOAK=10000000 go test -count=1 -v -timeout 30m -run TestSoak ./verbs/hca
	ROCED_STRESS=5m go test -race -count=1 -v -timeout 20m -run TestStress ./verbs/hca

storm: need-clib ## 300 million random steps of the machine of connections, and 100 million of what they have in flight; some three million requests over connections that lose, repeat, damage and reorder packets; 10^8 forged packets, and wrong requests; programs and services killed at each message
	ROCED_CONN=300000000 go test -count=1 -v -timeout 60m -run TestModel ./datapath/conn
	ROCED_FLIGHT=100000000 go test -count=1 -v -timeout 60m -run TestModel ./datapath/flight
	ROCED_STORM=90000 go test -count=1 -v -timeout 60m -run TestStorm ./datapath
	ROCED_BADWIRE=3000 go test -count=1 -v -timeout 60m -run TestConnectionOverABadWire ./verbs/hca
	ROCED_HOSTILE=50000000 go test -count=1 -v -timeout 60m -run TestHostilePeer ./datapath
	ROCED_HOSTILE=100000000 go test -count=1 -v -timeout 60m -run TestHostileProgram ./datapath
	ROCED_KILLED=1 go test -count=1 -v -timeout 60m -run KilledAtEachCall ./verbs/c/ctest

chaos: need-race ## ten minutes of two services and ten programs that are killed and stopped, while their links change; over XDP with one worker, with three, then over UDP sockets
	ROCED_CHAOS_NETWORKS=xdp,xdp ROCED_CHAOS_WORKERS=1 ROCED_CHAOS=5m go test -race -count=1 -v -timeout 20m -run 'TestChaos|TestServiceEndsUnderLoad' ./cmd/roced/run/chaos
	ROCED_CHAOS_NETWORKS=xdp,xdp ROCED_CHAOS_WORKERS=3 ROCED_CHAOS=5m go test -race -count=1 -v -timeout 20m -run TestChaos ./cmd/roced/run/chaos
	ROCED_CHAOS_NETWORKS=udp,udp ROCED_CHAOS=10m go test -race -count=1 -v -timeout 20m -run TestChaos ./cmd/roced/run/chaos

interop: ## against Soft-RoCE of Linux in a virtual machine; a line a case
	go run ./hack/interop
	go run ./hack/interop -tx trains
	go run ./hack/interop -workers 2

test-kernels: ## the tests inside virtual machines: Linux 6.1 and 6.12, cards with zero-copy, and rates between two
	go run ./hack/interop/kernels
	go run ./hack/interop/rates

kernels-short: ## of test-kernels what CI runs: VLANs, bonds, the steering program's tests; four minutes of CPU time
	go run ./hack/interop/kernels -short

platforms: ## the release, and all tests, in virtual machines: Linux 6.1, 6.12 and the newest on amd64, 6.1 and 6.12 with pages of 16 KiB on arm64; prints README's table
	go run ./hack/platforms

platforms-short: ## of platforms what CI runs: the demo as root and as an ordinary user, ibv_rc_pingpong in memory; Linux 6.1 on amd64 and arm64
	go run ./hack/platforms -short

clib: need-clib ## libibverbs and librdmacm for programs in C, into clib/, where ./roced exec finds them; for musl too if musl-gcc is there
	$(MAKE) -s -j$$(nproc) -C verbs/c OUT=$(CURDIR)/clib
	@! command -v musl-gcc >/dev/null || $(MAKE) -s -j$$(nproc) -C verbs/c OUT=$(CURDIR)/clib/musl MUSL=1

programs: ## unmodified RDMA programs of Debian over roced; a line a case
	go run ./hack/programs

test-action: need-test-action build clib ## the steps of the GitHub action, as nobody in a fresh Debian
	deploy/ci/clean.sh

fresh: need-fresh ## the README's two commands where Go is the only tool: as root and as a user in a minimal Debian, in a chroot, and as a user here
	hack/fresh.sh

containers: need-containers build clib ## unmodified programs in containers of podman, in each way of docs/CONTAINERS.md
	hack/containers/test.sh

release: ## VERSION=0.1.0 KEY=FINGERPRINT: a release in dist/, with repositories for apt and dnf; DRAFT=yes for a rehearsal
	go run ./hack/release -version "$(VERSION)" -key "$(KEY)" -arch $(ARCHES) $(if $(DRAFT),-draft)

package: ## Debian packages, RPMs and archives for ARCHES (amd64,arm64), checksums and SBOMs, into dist/
	go run ./hack/package -arch $(ARCHES)

test-install: need-test-install ## a release installed in clean roots of Debian 12 and 13, by dnf, and with busybox only; then the first figure
	hack/release/install.sh

image: ## an OCI image for ARCHES (amd64,arm64), which podman load takes, into dist/
	go run ./hack/package -arch $(ARCHES) -formats image

image-kubernetes: need-image-kubernetes ## localhost/roced-kubernetes:latest, from ROCED, an image that make image made
	CGO_ENABLED=0 go -C deploy/kubernetes build -trimpath -o $(CURDIR)/dist/kubernetes/ ./cmd/...
	podman build -q --build-arg ROCED=$(ROCED) -f deploy/kubernetes/Containerfile -t localhost/roced-kubernetes:latest dist/kubernetes

test-package: ## the Debian package in a virtual machine with systemd: install, use, reboot, upgrade, purge
	go run ./hack/package/guest

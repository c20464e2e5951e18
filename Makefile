# "make" alone lists the targets. A target that needs another tool than Go checks all of its tools first:
# CONTRIBUTING.md lists them (lint and package also need a network, for staticcheck and nfpm).

.DEFAULT_GOAL := help
.PHONY: help build clib generate docs recording demo check lint cross vulncheck fuzz test race model fresh programs containers test-action soak storm chaos bench kernels-short test-kernels platforms-short platforms interop test-package package image image-kubernetes release test-install

ARCHES ?= amd64,arm64
ROCED ?= localhost/roced:latest

# Run by version, not from go.mod, so that it is no dependency of who uses the packages.
STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

help: ## list the targets
	@awk -F ':.*## ' '/^##@ / { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# What needs tools checks all of them first; so do the commands in hack.
need-%:
	@go run ./hack/tools $*

##@ Build

build: ## ./roced
	go build -o roced ./cmd/roced

clib: need-clib ## libibverbs and librdmacm into clib/, for glibc, and for musl if musl-gcc is installed
	$(MAKE) -s -j$$(nproc) -C verbs/c OUT=$(CURDIR)/clib
	@! command -v musl-gcc >/dev/null || $(MAKE) -s -j$$(nproc) -C verbs/c OUT=$(CURDIR)/clib/musl MUSL=1

generate: need-generate ## the eBPF objects, and the files generated from the table of numbers
	go generate ./...

docs: need-docs ## the documents as a site in dist/docs, with links checked
	go run ./hack/docs

recording: need-recording build clib ## docs/terminal.svg: README's first commands, recorded and drawn
	go run ./hack/recording

demo: ## two hosts in two namespaces exchange messages
	go run ./cmd/roced demo

##@ Check, as an ordinary user

check: lint ## lint and all tests; run it before each pull request
	go test -vet=off ./...
	go -C hack/plot test -vet=off ./...
	go -C deploy/kubernetes test -vet=off ./...

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

cross: ## build or vet for arm64, big-endian processors and macOS
	GOARCH=arm64 go build ./...
	GOARCH=s390x go vet ./...
	GOOS=darwin go vet ./hack/structure/testdata/elsewhere

vulncheck: ## compare the dependencies with the Go vulnerability database (downloaded)
	go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./...

fuzz: need-fuzz ## every fuzz target, a minute each
	hack/fuzz.sh 60s

##@ Check more, as root

test: ## all tests, including those of namespaces
	go test ./...
	go -C hack/plot test ./...
	go -C deploy/kubernetes test ./...

race: need-race ## all tests under the race detector, with more rounds
	ROCED_ROUNDS=all go test -race ./...

model: need-race ## a million random verbs calls against the model, under the race detector
	ROCED_MODEL=1000000 go test -race -count=1 -v -timeout 20m -run TestModel ./verbs/hca

fresh: need-fresh ## README's two commands where Go is the only tool
	hack/fresh.sh

programs: ## unmodified RDMA programs of Debian over roced, a line a case
	go run ./hack/programs

containers: need-containers build clib ## unmodified programs in podman containers, in each way of docs/CONTAINERS.md
	hack/containers/test.sh

test-action: need-test-action build clib ## the steps of the GitHub action, as nobody in a minimal Debian
	deploy/ci/clean.sh

soak: need-race ## 20 million messages, each accounted for, then 10 minutes of changing hosts
	ROCED_SOAK=10000000 go test -count=1 -v -timeout 30m -run TestSoak ./verbs/hca
	ROCED_STRESS=5m go test -race -count=1 -v -timeout 20m -run TestStress ./verbs/hca

# 3*10^8 steps of the machine of connections and 10^8 of what they have in flight, 3 million requests over networks that
# lose, repeat, damage and reorder packets, 1.5*10^8 forged packets and wrong requests, and programs and services killed
# at each message.
storm: need-clib ## random states, bad networks, forged packets, killed programs; hours
	ROCED_CONN=300000000 go test -count=1 -v -timeout 60m -run TestModel ./datapath/conn
	ROCED_FLIGHT=100000000 go test -count=1 -v -timeout 60m -run TestModel ./datapath/flight
	ROCED_STORM=90000 go test -count=1 -v -timeout 60m -run TestStorm ./datapath
	ROCED_BADWIRE=3000 go test -count=1 -v -timeout 60m -run TestConnectionOverABadWire ./verbs/hca
	ROCED_HOSTILE=50000000 go test -count=1 -v -timeout 60m -run TestHostilePeer ./datapath
	ROCED_HOSTILE=100000000 go test -count=1 -v -timeout 60m -run TestHostileProgram ./datapath
	ROCED_KILLED=1 go test -count=1 -v -timeout 60m -run KilledAtEachCall ./verbs/c/ctest

# Over XDP with one worker and with three, then over UDP sockets.
chaos: need-race ## 20 minutes of killed services and programs while links change
	ROCED_CHAOS_NETWORKS=xdp,xdp ROCED_CHAOS_WORKERS=1 ROCED_CHAOS=5m go test -race -count=1 -v -timeout 20m -run 'TestChaos|TestServiceEndsUnderLoad' ./cmd/roced/run/chaos
	ROCED_CHAOS_NETWORKS=xdp,xdp ROCED_CHAOS_WORKERS=3 ROCED_CHAOS=5m go test -race -count=1 -v -timeout 20m -run TestChaos ./cmd/roced/run/chaos
	ROCED_CHAOS_NETWORKS=udp,udp ROCED_CHAOS=10m go test -race -count=1 -v -timeout 20m -run TestChaos ./cmd/roced/run/chaos

bench: ## roced, kernel UDP and raw AF_XDP compared; writes and draws docs/bench.json
	go run ./hack/bench -output docs/bench.json
	go -C hack/plot run .

##@ Virtual machines, as root

kernels-short: ## the part of test-kernels that CI runs; 4 minutes of CPU time
	go run ./hack/interop/kernels -short

test-kernels: ## VLANs, bonds, eBPF with Linux 6.1 and 6.12; zero-copy NICs; rates between two machines
	go run ./hack/interop/kernels
	go run ./hack/interop/rates

platforms-short: ## the part of platforms that CI runs: the demo and one program
	go run ./hack/platforms -short

platforms: ## the release and all tests on five kernels, amd64 and arm64; prints README's table; hours
	go run ./hack/platforms

interop: ## against the kernel's Soft-RoCE, a line a case
	go run ./hack/interop
	go run ./hack/interop -tx trains
	go run ./hack/interop -workers 2

test-package: ## the Debian package with systemd: install, use, reboot, upgrade, purge
	go run ./hack/package/guest

##@ Release

package: ## Debian packages, RPMs, archives, checksums and SBOMs in dist/, for ARCHES
	go run ./hack/package -arch $(ARCHES)

image: ## an OCI image in dist/, for ARCHES
	go run ./hack/package -arch $(ARCHES) -formats image

image-kubernetes: need-image-kubernetes ## localhost/roced-kubernetes:latest, from the image ROCED
	CGO_ENABLED=0 go -C deploy/kubernetes build -trimpath -o $(CURDIR)/dist/kubernetes/ ./cmd/...
	podman build -q --build-arg ROCED=$(ROCED) -f deploy/kubernetes/Containerfile -t localhost/roced-kubernetes:latest dist/kubernetes

release: ## VERSION=0.1.0 KEY=FINGERPRINT: dist/ with repositories for apt and dnf (or DRAFT=yes)
	go run ./hack/release -version "$(VERSION)" -key "$(KEY)" -arch $(ARCHES) $(if $(DRAFT),-draft)

test-install: need-test-install ## a release installed in clean roots by apt, dnf and from the archive
	hack/release/install.sh

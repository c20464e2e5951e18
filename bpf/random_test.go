// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/ebpf"
)

// seedVariable is an environment variable with the seed of an earlier run of TestModel, to repeat it.
const seedVariable = "ROCED_TEST_SEED"

const (
	randomFrames = 120_000
	batchFrames  = 256 // frames between two reads of the counters

	// atLeast is the minimum number of frames for each verdict, so that the test covers all verdicts.
	atLeast = randomFrames / 1000
)

// TestModel compares the program with the model, for random and damaged frames.
func TestModel(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	hosts := []*host{
		newHost(t, crowded(random, untagged())),
		newHost(t, crowded(random, inVLAN100())),
		newHost(t, crowded(random, withoutRing())),
		newHost(t, twoMACs()),
	}
	var reached Counters
	for range randomFrames / batchFrames {
		h := hosts[random.IntN(len(hosts))]
		frames := make([][]byte, batchFrames)
		for i := range frames {
			frames[i] = randomFrame(random, h.world)
		}
		h.compare(t, frames, &reached)
	}
	for v, times := range reached {
		if Verdict(v) == DropRedirect {
			continue // tested in redirect_test.go
		}
		t.Logf("%-22s %6d", Verdict(v), times)
		if times < atLeast {
			t.Errorf("%s was reached only %d times", Verdict(v), times)
		}
	}
}

func testSeed(t *testing.T) uint64 {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
	}
	t.Logf("%s=%d", seedVariable, seed)
	return seed
}

// crowded adds addresses and numbers to the world, some of which differ in one bit.
func crowded(random *rand.Rand, w world) world {
	for range 100 {
		w.own[flip(random, own4)] = true
		w.own[flip(random, own6)] = true
		w.groups[flip(random, group4)] = true
		w.groups[flip(random, group6)] = true
		w.queuePairs[1+random.Uint32N(0xFFFFFE)] = true
		w.queuePairs[knownQP^1<<random.IntN(24)] = true
	}
	return w
}

// flip inverts a bit of the lower half, so that a group remains a group.
func flip(random *rand.Rand, addr netip.Addr) netip.Addr {
	b := addr.AsSlice()
	b[len(b)/2+random.IntN(len(b)/2)] ^= 1 << random.IntN(8)
	flipped, _ := netip.AddrFromSlice(b)
	return flipped
}

// compare checks the action of each frame and the counters of the batch. If the counters differ, it finds the first
// frame that is counted wrong.
func (h *host) compare(t *testing.T, frames [][]byte, reached *Counters) {
	t.Helper()
	want := h.counters(t)
	for _, frame := range frames {
		verdict := h.decide(frame)
		want[verdict]++
		reached[verdict]++
		action, err := h.objs.RocedSteer.Run(&ebpf.RunOptions{Data: frame})
		must(t, err)
		if action != actionOf(verdict) {
			t.Fatalf("VLAN %d: got action %d, want %s\n%x", h.world.vlan, action, verdict, frame)
		}
	}
	if h.counters(t) == want {
		return
	}
	for _, frame := range frames {
		if got, model := h.run(t, ebpf.RunOptions{Data: frame}), h.decide(frame); got != model {
			t.Fatalf("VLAN %d: got %s, want %s\n%x", h.world.vlan, got, model, frame)
		}
	}
	t.Fatalf("the counters differ from the sum over all frames")
}

// randomFrame returns a packet to the host or to a similar destination, often damaged.
func randomFrame(random *rand.Rand, w world) []byte {
	f := randomPacket(random, w)
	b := f.bytes()
	for random.IntN(2) == 0 {
		b = damage(random, b, 14+4*len(f.tags))
	}
	return b
}

func randomPacket(random *rand.Rand, w world) frame {
	f := pick(random, toOwn4, toOwn6, toGroup4, toGroup6)()
	if w.vlan != 0 {
		f.tags = []tag{{pick[uint16](random, tpidCustomer, tpidService), w.vlan | uint16(random.IntN(16))<<12}}
	}
	if rarely(random) {
		vlan := pick(random, w.vlan, w.vlan^1, 0, uint16(random.Uint32()))
		f.tags = append(f.tags, tag{pick[uint16](random, tpidCustomer, tpidService), vlan})
	}
	if rarely(random) {
		f.tags = nil
	}
	if rarely(random) {
		f.src = pick(random, f.dst, twin(f.dst), flip(random, f.src), own(f.dst), alike(f.dst))
	}
	if rarely(random) {
		f.dst = pick(random, f.src, twin(f.dst), flip(random, f.dst), own(f.dst), alike(f.dst))
	}
	if rarely(random) {
		f.qpn = pick[uint32](random, knownQP, unknownQP, 0, multicastQPN, knownQP^1<<random.IntN(24))
	}
	if rarely(random) {
		f.src = martian(random, f.dst)
	}
	if rarely(random) {
		f.mac = pick(random, ownMAC, upperMAC, otherMAC, groupMAC, [6]byte{}, [6]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF})
		f.mac[random.IntN(6)] ^= pick[byte](random, 0, 1, 2, 0x80)
	}
	if rarely(random) && f.dst.Is4() {
		f.options = 4 * random.IntN(11)
	}
	f.opcode = pick[byte](random, sendOnly, sendOnly+1, rcSendOnly, 0x81, byte(random.Uint32()))
	f.payload = pick(random, -random.IntN(5), 16, random.IntN(200), random.IntN(1025))
	if random.IntN(100) == 0 {
		f.payload = 3000 + random.IntN(6000) // more than one page, so that the frame has fragments
	}
	f.padding = pick(random, 0, 0, random.IntN(50))
	return f
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

func rarely(random *rand.Rand) bool { return random.IntN(8) == 0 }

// own, twin and alike return an address of the same IP version as like.
func own(like netip.Addr) netip.Addr { return sameKind(like, own4, own6) }

// martian returns a martian or similar address.
func martian(random *rand.Rand, like netip.Addr) netip.Addr {
	text := pick(random, "::", "::1", "::2", "::ffff:10.0.0.2", "::fffe:10.0.0.2", "1::", "::1:0:0:1", "::1:0:1", "::10.0.0.2")
	if like.Is4() {
		text = pick(random, "0.0.0.0", "0.0.0.1", "127.0.0.1", "127.255.255.255", "126.0.0.1", "128.0.0.1",
			"255.255.255.255", "255.255.255.254", "240.0.0.1", "10.0.0.255", "10.0.1.255")
	}
	return netip.MustParseAddr(text)
}

func twin(like netip.Addr) netip.Addr { return sameKind(like, twin4, twin6) }

func alike(like netip.Addr) netip.Addr {
	return sameKind(like, alike4, netip.AddrFrom16(own4.As16()))
}

func sameKind(like, ipv4, ipv6 netip.Addr) netip.Addr {
	if like.Is4() {
		return ipv4
	}
	return ipv6
}

// damage changes the frame in one way. ip is where its IP header starts, if it has one.
func damage(random *rand.Rand, b []byte, ip int) []byte {
	switch at := random.IntN(min(len(b), ip+80)); random.IntN(6) {
	case 0: // a bit of the headers
		b[at] ^= 1 << random.IntN(8)
	case 1: // a byte of the headers
		b[at] = pick[byte](random, 0, 1, 0x7F, 0x80, 0xFF, byte(random.Uint32()))
	case 2: // truncated
		b = b[:14+random.IntN(len(b)-14+1)]
	case 3: // bytes appended
		b = append(b, make([]byte, random.IntN(64))...)
	case 4: // a length, slightly or to a boundary value
		alterLength(random, b, ip+pick(random, 2, 4, 20+4, 40+4))
	case 5: // a next header or fragment field
		if field := ip + pick(random, 6, 7, 9); field < len(b) {
			b[field] = pick[byte](random, 0, 17, 44, 0x20, 0x40, byte(random.Uint32()))
		}
	}
	return b
}

func alterLength(random *rand.Rand, b []byte, at int) {
	if at+2 > len(b) {
		return
	}
	length := binary.BigEndian.Uint16(b[at:])
	binary.BigEndian.PutUint16(b[at:], pick(random, length+1, length-1, length+8, length-8, 0, 19, 20, 23, 24, 31, 32, 0xFFFF))
}

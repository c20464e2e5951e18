// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"testing"
	"time"
)

// fairness returns Jain's fairness index: 1 if all values are equal, 1/n if one value is not 0.
func fairness(all []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, x := range all {
		sum, squares = sum+x, squares+x*x
	}
	return sum * sum / squares / float64(len(all))
}

// endless is a number of packets that no test finishes sending.
const endless = 1 << 40

// measure lets senders send for a time, and returns the number of bytes and packets that each has sent.
func (w *world) measure(all []*sender, k Kind, d time.Duration) (bytes, packets []float64) {
	w.Helper()
	end := w.now.Add(d)
	w.run(2*d, func() bool { return !w.now.Before(end) })
	for _, s := range all {
		bytes, packets = append(bytes, float64(s.bytes[k])), append(packets, float64(s.packets[k]))
	}
	return bytes, packets
}

// Flows of long packets and flows of short packets that always have packets to send transfer the same number of bytes,
// both with sends and with READs.
func TestFairByBytes(t *testing.T) {
	for _, k := range []Kind{Sends, Reads} {
		for _, frames := range [][]int{{1082, 4154}, {314, 1082, 4154}, {314, 570, 1082, 2106, 4154}} {
			w, tenant := newWorld(t), new(Tenant)
			amount := [kinds]int{}
			amount[k] = endless
			all := known(w.many(tenant, 60, amount[Sends], amount[Reads]))
			for i, s := range all {
				s.length = frames[i%len(frames)]
				s.condition.Frame = s.length
			}
			bytes, _ := w.measure(all, k, 200*time.Millisecond)
			if index := fairness(bytes); index < 0.98 {
				t.Errorf("kind %d, frames %v: fairness %.3f; %.0f", k, frames, index, bytes[:len(frames)])
			}
		}
	}
}

// Flows of short messages send equal numbers of packets, and not fewer than flows of long messages.
func TestFairByPackets(t *testing.T) {
	w, tenant := newWorld(t), new(Tenant)
	all := known(w.many(tenant, 60, endless, 0))
	for _, s := range all[:30] {
		s.length = 64 + 58
	}
	_, packets := w.measure(all, Sends, 200*time.Millisecond)
	if index := fairness(packets); index < 0.98 {
		t.Errorf("fairness %.3f: %.0f", index, packets)
	}
}

// Two tenants have equal parts, even if one has many flows, or flows of longer packets.
func TestTenantsAreFair(t *testing.T) {
	for _, length := range []int{frame, 4154} {
		w, few, many := newWorld(t), new(Tenant), new(Tenant)
		a, b := known(w.many(few, 20, endless, 0)), known(w.many(many, 200, endless, 0))
		for _, s := range b {
			s.length = length
			s.condition.Frame = length
		}
		w.measure(nil, Sends, 200*time.Millisecond)
		sums := [2]float64{}
		for i, all := range [][]*sender{a, b} {
			for _, s := range all {
				sums[i] += float64(s.bytes[Sends])
			}
		}
		if sums[0] < 0.8*sums[1] || sums[1] < 0.8*sums[0] {
			t.Errorf("frames of %d bytes: %.0f and %.0f", length, sums[0], sums[1])
		}
	}
}

// Thousands of flows with READs and WRITEs of all sizes finish, and no flow waits for a long time.
func TestNoStarvation(t *testing.T) {
	w, tenant := newWorld(t), new(Tenant)
	var all []*sender
	for i := range 3000 {
		all = append(all, w.sender(tenant, 1+i%7*100, i%5*300))
	}
	for i, s := range all {
		s.length = []int{122, 1082, 4154}[i%3]
		s.condition.Frame = max(s.length, frame)
	}
	died(w.many(tenant, 1000, 100, 100))
	w.run(20*time.Second, finished(all))
	longest := time.Duration(0)
	for _, s := range all {
		longest = max(longest, s.longest)
	}
	if t.Logf("all done after %v; the longest wait was %v", w.now.Sub(start), longest); longest > 2*time.Second {
		t.Errorf("a flow has waited for %v", longest)
	}
}

// The link is busy as long as any flow has packets to send, with flows that take turns and flows that read.
func TestWorkConserving(t *testing.T) {
	for _, count := range []int{1, 4, 8, 16, 64, 1000} {
		w, tenant := newWorld(t), new(Tenant)
		all := known(w.many(tenant, count, endless, 0))
		const d = 20 * time.Millisecond
		w.measure(all, Sends, d)
		sum := 0
		for _, s := range all {
			sum += s.bytes[Sends]
		}
		window := float64(min(count*maxFrames, maxFlight) * frame)
		if most := min(rate, window/(trip+2*tick).Seconds()) * (d - 2*trip).Seconds(); float64(sum) < 0.8*most {
			t.Errorf("%d flows: %d bytes of %.0f", count, sum, most)
		}
	}
}

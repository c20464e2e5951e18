// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"testing"

	"github.com/roced/roced/datapath/wire"
)

// Any number of requests in progress is kept in the order in which they were taken, and each is found by its PSNs.
func TestWorks(t *testing.T) {
	var w works
	for i := range uint32(40) {
		one := w.add()
		*one = work{first: wire.PSN(10 * i), packets: 10}
		if i%4 == 3 {
			w.drop()
		}
	}
	for i := range w.count {
		if first := wire.PSN(100 + 10*i); w.at(i).first != first || w.find(first+9) != i {
			t.Errorf("place %d: the first PSN is %d, found at %d", i, w.at(i).first, w.find(first+9))
		}
	}
	if w.find(99) != 30 || w.find(400) != 30 {
		t.Error("found a request without that PSN")
	}
}

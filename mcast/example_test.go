// SPDX-License-Identifier: Apache-2.0

package mcast_test

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/roced/roced/mcast"
)

// A table of groups with names for queue pairs. A second attach is reported, and one detach undoes both.
func ExampleTable() {
	table := mcast.NewTable[string](mcast.Limits{Groups: 16, QPsPerGroup: 16, Attachments: 64})
	mgid, _ := mcast.MGID(netip.MustParseAddr("239.1.2.3"))
	for _, qp := range []string{"first", "second", "first"} {
		err := table.Add(mcast.NewGroup[string](mgid, 0), qp)
		fmt.Println(qp, errors.Is(err, mcast.ErrGroupExists), errors.Is(err, mcast.ErrAttached))
	}
	fmt.Println(mgid, table.Members(mgid), mcast.MAC(mgid))
	// Output:
	// first false false
	// second true false
	// first false true
	// ::ffff:239.1.2.3 [first second] 01:00:5e:01:02:03
}

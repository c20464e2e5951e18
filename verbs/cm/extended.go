// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"fmt"

	"github.com/roced/roced/verbs"
)

// ECE are vendor-specific extensions to connections (ibv_ece, enhanced connection establishment). Cards of roced have
// none: all fields are 0.
type ECE struct{ VendorID, Options, Mask uint32 }

// SetLocalECE returns verbs.ErrUnsupported (rdma_set_local_ece): the device has no extensions, and connections do not
// need them.
func (i *ID) SetLocalECE(ECE) error {
	if i == nil {
		return fmt.Errorf("set ECE: %w", errNil)
	}
	return fmt.Errorf("set ECE: %w: the device has no connection extensions", verbs.ErrUnsupported)
}

// RemoteECE returns the peer's extensions that this card supports (rdma_get_remote_ece): none.
func (i *ID) RemoteECE() (ECE, error) {
	if i == nil {
		return ECE{}, fmt.Errorf("get the peer's ECE: %w", errNil)
	}
	_, err := i.query("get the peer's ECE")
	return ECE{}, err
}

// Establish confirms the peer's acceptance for a queue pair created by the program, after EventConnectResponse
// (rdma_establish): the peer gets EventEstablished. verbs.ErrInvalid if the id has a queue pair, since Get has then
// confirmed already, and if there is no response.
func (i *ID) Establish() error {
	if i == nil {
		return fmt.Errorf("establish: %w", errNil)
	}
	if i.QP() != nil {
		return fmt.Errorf("establish: %w: the id has a queue pair, so Get confirms", verbs.ErrInvalid)
	}
	return i.Accept(nil)
}

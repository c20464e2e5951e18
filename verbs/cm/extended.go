package cm

import (
	"fmt"

	"github.com/roced/roced/verbs"
)

// ECE are extensions to connections that two cards of a vendor can have (ibv_ece, enhanced connection establishment).
// Cards here have none: all of it is 0.
type ECE struct{ VendorID, Options, Mask uint32 }

// SetLocalECE would name extensions to the peer (rdma_set_local_ece). There are none: verbs.ErrUnsupported, and a
// connection is the same without.
func (i *ID) SetLocalECE(ECE) error {
	if i == nil {
		return fmt.Errorf("set ECE: %w", errNil)
	}
	return fmt.Errorf("set ECE: %w: the device has no extensions of connections", verbs.ErrUnsupported)
}

// RemoteECE are the extensions of the peer's that this card shares (rdma_get_remote_ece): none.
func (i *ID) RemoteECE() (ECE, error) {
	if i == nil {
		return ECE{}, fmt.Errorf("get the peer's ECE: %w", errNil)
	}
	_, err := i.query("get the peer's ECE")
	return ECE{}, err
}

// Establish confirms the peer's acceptance for a queue pair of the program's own, after EventConnectResponse
// (rdma_establish): the peer gets EventEstablished. verbs.ErrInvalid if the id has a queue pair, since Get has confirmed
// then, and if there is no response.
func (i *ID) Establish() error {
	if i == nil {
		return fmt.Errorf("establish: %w", errNil)
	}
	if i.QP() != nil {
		return fmt.Errorf("establish: %w: the id has a queue pair, so that Get confirms", verbs.ErrInvalid)
	}
	return i.Accept(nil)
}

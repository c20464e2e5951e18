// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ids

import (
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/cm"
	"github.com/roced/roced/verbs/provider"
)

// InitIDQPAttr carries out provider.InitIDQPAttr.
func (s *Session) InitIDQPAttr(r provider.InitIDQPAttrRequest) (grant provider.InitIDQPAttrGrant, err error) {
	err = s.withID(r.ID, func(i *ID) (err error) {
		grant, err = i.qpAttr(r.State)
		return err
	})
	return grant, err
}

// qpAttr returns the attributes with which a queue pair of the id changes to a state.
func (i *ID) qpAttr(state verbs.QPState) (grant provider.InitIDQPAttrGrant, err error) {
	if !i.onDevice() {
		return grant, fmt.Errorf("%w: the id is not bound to a device: bind it to an address, or resolve one", verbs.ErrInvalid)
	}
	attr := i.datagramAttr
	if i.connects() {
		attr = i.connectedAttr
	}
	if grant, err = attr(state); err != nil {
		return provider.InitIDQPAttrGrant{}, err
	}
	grant.Attr.State = state
	grant.Mask |= verbs.QPAttrState
	return grant, nil
}

func (i *ID) datagramAttr(state verbs.QPState) (grant provider.InitIDQPAttrGrant, err error) {
	switch state {
	case verbs.QPStateInit:
		grant.Attr.Port, grant.Attr.QKey = 1, i.qkey
		grant.Mask = verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrQKey
	case verbs.QPStateRTR:
	case verbs.QPStateRTS:
		grant.Mask = verbs.QPAttrSQPSN
	default:
		err = noAttributes(state)
	}
	return grant, err
}

func noAttributes(state verbs.QPState) error {
	return fmt.Errorf("%w: attributes for %v; the states with attributes are INIT, RTR and RTS", verbs.ErrInvalid, state)
}

// connectedAttr returns the attributes of a connection. Until both sides have named their queue pairs, only INIT has
// attributes.
func (i *ID) connectedAttr(state verbs.QPState) (grant provider.InitIDQPAttrGrant, err error) {
	terms, agreed := i.terms()
	switch {
	case state == verbs.QPStateInit:
		grant.Attr.Port = 1
		if agreed {
			grant.Attr.AccessFlags = accessFor(terms.ResponderResources)
		}
		grant.Mask = verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrAccessFlags
	case state != verbs.QPStateRTR && state != verbs.QPStateRTS:
		err = noAttributes(state)
	case !agreed:
		err = fmt.Errorf("%w: attributes for %v: there is no connection, or the peer has not answered yet", verbs.ErrInvalid, state)
	case state == verbs.QPStateRTR:
		grant = i.attrToReceive(&terms)
	default:
		grant = attrToSend(&terms)
		if i.ackSet {
			grant.Attr.Timeout = i.ackTimeout
		}
	}
	switch i.kind {
	case verbs.QPTypeUC:
		grant.Mask &^= ofReliable
	case verbs.QPTypeXRCSend:
		grant.Mask &^= ofResponder
	case verbs.QPTypeXRCRecv:
		grant.Mask &^= ofRequester
	}
	return grant, err
}

// The attributes of responders only and of requesters only: an XRC queue pair is one of them.
const (
	ofResponder = verbs.QPAttrMaxDestRDAtomic | verbs.QPAttrMinRNRTimer
	ofRequester = verbs.QPAttrRetryCnt | verbs.QPAttrRNRRetry | verbs.QPAttrMaxQPRDAtomic
)

// ofReliable has the attributes that unreliable connections lack, since they have no ACKs and no READs.
const ofReliable = verbs.QPAttrMaxDestRDAtomic | verbs.QPAttrMinRNRTimer | verbs.QPAttrTimeout | verbs.QPAttrRetryCnt | verbs.QPAttrRNRRetry | verbs.QPAttrMaxQPRDAtomic

// terms returns the terms of the id's connection, with the READs and atomics limited to those that the card supports;
// agreed reports whether they are complete.
func (i *ID) terms() (terms cm.Terms, agreed bool) {
	if i.connection != nil {
		i.session.manager.With(func(*cm.Manager, time.Time) { terms, agreed = i.connection.Terms, i.connection.Agreed() })
	}
	terms.ResponderResources, terms.InitiatorDepth = min(terms.ResponderResources, MaxRDAtomic), min(terms.InitiatorDepth, MaxRDAtomic)
	return terms, agreed
}

// accessFor returns the access rights of a peer, as the kernel's rdma_cm sets them.
func accessFor(responderResources uint8) verbs.AccessFlags {
	if responderResources == 0 {
		return verbs.AccessRemoteWrite
	}
	return verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic
}

// attrToReceive returns the attributes for RTR.
func (i *ID) attrToReceive(t *cm.Terms) (grant provider.InitIDQPAttrGrant) {
	a := &grant.Attr
	a.AHAttr = i.session.manager.Card.AHAttr(i.ends, t.Path.TrafficClass)
	if i.given != nil {
		a.AHAttr.SL = i.given.SL
	}
	a.AHAttr.GRH.FlowLabel, a.AHAttr.GRH.HopLimit = t.Path.FlowLabel, t.Path.HopLimit
	a.PathMTU, a.DestQPN, a.RQPSN, a.MaxDestRDAtomic = t.MTU, t.RemoteQPN, t.RQPSN, t.ResponderResources
	grant.Mask = verbs.QPAttrAV | verbs.QPAttrPathMTU | verbs.QPAttrDestQPN | verbs.QPAttrRQPSN | verbs.QPAttrMaxDestRDAtomic | verbs.QPAttrMinRNRTimer
	return grant
}

// attrToSend returns the attributes for RTS.
func attrToSend(t *cm.Terms) (grant provider.InitIDQPAttrGrant) {
	a := &grant.Attr
	a.SQPSN, a.Timeout, a.RetryCnt, a.RNRRetry, a.MaxRDAtomic = t.SQPSN, t.AckTimeout, t.RetryCount, t.RNRRetryCount, t.InitiatorDepth
	grant.Mask = verbs.QPAttrSQPSN | verbs.QPAttrTimeout | verbs.QPAttrRetryCnt | verbs.QPAttrRNRRetry | verbs.QPAttrMaxQPRDAtomic
	return grant
}

// SPDX-License-Identifier: Apache-2.0

// Package ids tests connection ids (rdma_cm) of a provider.Provider, at the level of its commands: addresses and routes
// (address.go), states (state.go), requests and answers (connect.go, connection.go), queue pairs that they connect
// (connected.go), groups (join.go). Tests is run by verbstest.Run.
package ids

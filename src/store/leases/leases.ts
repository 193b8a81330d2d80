import type { InstanceId } from '../../domain/ids.ts'
import type { InstanceKind } from '../../domain/instance.ts'

/** The right to act for an instance, granted to one owner at a time. `epoch` increases with every new owner. */
export interface Lease {
  readonly instanceId: InstanceId
  readonly owner: string
  readonly epoch: number
}

export interface HeldLease extends Lease {
  readonly kind: InstanceKind
}

/** The state of the cluster, as returned to a node that registers or renews its registration. */
export interface Attendance {
  /** How many instances of each kind the node should run. The shares of all nodes add up to all instances. */
  shares: Readonly<Record<InstanceKind, number>>
  /** The kinds whose left-over instances the node may take: those that it runs, and those that no node runs. */
  leftOver: readonly InstanceKind[]
  nodes: number
  /** The settings that the other nodes have registered. */
  otherSettings: readonly { node: string; settings: string }[]
  /** Milliseconds until the first lease of another node lapses, unless it is renewed; null if there is none. */
  nextLapseMs: number | null
}

export interface Leases {
  /**
   * Takes up to `limit` leases that are free or have lapsed, each under a higher epoch. Includes deleted instances that are not
   * yet erased.
   * @param kinds by default all
   */
  acquire(owner: string, limit: number, kinds?: readonly InstanceKind[]): Promise<HeldLease[]>
  /** The same for leases that have been free for 5 s, because no other node took them. */
  acquireLeftOver(owner: string, limit: number, kinds?: readonly InstanceKind[]): Promise<HeldLease[]>
  /**
   * Registers the owner as a node for 8 s.
   * @param runs the kinds of instances that it can run; by default all
   * @param settings JSON of the settings that all nodes must share
   */
  attend(owner: string, runs?: readonly InstanceKind[], settings?: string): Promise<Attendance>
  /** The owner stops: it gets no more shares. Its leases stay until they are released. */
  leave(owner: string): Promise<void>
  /**
   * Extends all of the owner's leases to 15 s from now. If a lease stays locked, the others are extended without it.
   * @returns the leases that have more than 10 s left
   */
  renew(owner: string): Promise<HeldLease[]>
  release(lease: Lease): Promise<void>
}

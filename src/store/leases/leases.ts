import type { InstanceId } from '../../domain/ids.ts'
import type { InstanceKind } from '../../domain/instance.ts'

/** The right to act for an instance, granted to one owner at a time; `epoch` grows with every new owner. */
export interface Lease {
  readonly instanceId: InstanceId
  readonly owner: string
  readonly epoch: number
}

export interface HeldLease extends Lease {
  readonly kind: InstanceKind
}

/** What a node is told when it shows that it is there. */
export interface Attendance {
  /** How many of all instances of each kind it should run; the shares of all nodes add up to all of them. */
  shares: Readonly<Record<InstanceKind, number>>
  /** Kinds of which it may take what is left over: those that it runs, and those that no node runs. */
  leftOver: readonly InstanceKind[]
  nodes: number
  /** Until the first lease of another node lapses unless it is renewed; null where there is none. */
  nextLapseMs: number | null
}

export interface Leases {
  /**
   * Takes up to `limit` instances (deleted ones included, while their rows are there) whose lease is free or has lapsed,
   * each under a higher epoch. @param kinds by default all
   */
  acquire(owner: string, limit: number, kinds?: readonly InstanceKind[]): Promise<HeldLease[]>
  /** The same, only of those that have been free for 5 s: no other node took them. */
  acquireLeftOver(owner: string, limit: number, kinds?: readonly InstanceKind[]): Promise<HeldLease[]>
  /** Counts the owner among the nodes for 8 s. @param runs the kinds of instances that it can run; by default all */
  attend(owner: string, runs?: readonly InstanceKind[]): Promise<Attendance>
  /** The owner counts no more. */
  leave(owner: string): Promise<void>
  /** Prolongs all of the owner's leases by 15 s, in one statement; returns those that still hold. */
  renew(owner: string): Promise<HeldLease[]>
  /** Gives one up at once. */
  release(lease: Lease): Promise<void>
}

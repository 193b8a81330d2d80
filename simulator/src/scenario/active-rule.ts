import { parseAddress } from '../addresses.ts'
import type { Node } from '../wire/nodes.ts'
import type { Direction, Rule } from './rule.ts'

/** Attributes that name the sender or recipient of a stanza. */
const PARTIES = ['from', 'to', 'participant', 'participant_pn', 'participant_lid', 'sender_pn', 'sender_lid'] as const

/** A rule that is set, and how often it has matched. */
export class ActiveRule {
  readonly id: number
  readonly rule: Rule
  readonly #endsAt: number
  fitted = 0
  applied = 0

  constructor(id: number, rule: Rule, now: number) {
    this.id = id
    this.rule = rule
    this.#endsAt = rule.forMs === undefined ? Number.POSITIVE_INFINITY : now + rule.forMs
  }

  hasEnded(now: number): boolean {
    return now >= this.#endsAt
  }

  /** Counts the stanza if it matches, and returns true if the rule applies to it. */
  applies(stanza: Node, direction: Direction, account: string | null, random: () => number): boolean {
    const { when } = this.rule
    if (!this.#matches(stanza, direction, account)) return false
    this.fitted++
    if (when.nth !== undefined && this.fitted !== when.nth) return false
    if (when.times !== undefined && this.fitted > when.times) return false
    if (when.probability !== undefined && random() >= when.probability) return false
    this.applied++
    return true
  }

  #matches({ tag, attrs }: Node, direction: Direction, account: string | null): boolean {
    const { when } = this.rule
    if (when.stanza !== undefined && when.stanza !== tag) return false
    if (when.direction !== undefined && when.direction !== direction) return false
    if (when.account !== undefined && when.account !== account) return false
    for (const [name, value] of Object.entries(when.attrs ?? {})) if ((attrs[name] ?? '') !== value) return false
    return when.contact === undefined || PARTIES.some(name => parseAddress(attrs[name])?.number === when.contact)
  }
}

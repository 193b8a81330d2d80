/**
 * The misbehaviour of the network. While a rule is set, every leaving and arriving stanza passes through here, and all
 * rules are applied to it.
 */

import type { PasskeyPlay } from '../passkey/passkey-play.ts'
import type { Agenda } from '../server/agenda.ts'
import type { Connection, Gate } from '../server/connection.ts'
import { type Node, node } from '../wire/nodes.ts'
import { ActiveRule } from './active-rule.ts'
import { addressed, failed, garbled, refusalOf, renamed, stripped, withoutDevicesOf } from './alterations.ts'
import { LinkingFailures } from './linking-failures.ts'
import type { MediaRetryAnswer } from './order.ts'
import { createRandom } from './random.ts'
import type { Direction, Rule } from './rule.ts'

export interface HeldStanza {
  direction: Direction
  /** Phone number; null for a client that is not linked yet. */
  account: string | null
  stanza: string
  attrs: Readonly<Record<string, string>>
}

export interface RuleState {
  id: number
  rule: Rule
  /** How many stanzas matched. */
  fitted: number
  /** How many of these the rule was applied to. */
  applied: number
}

export interface ScenarioState {
  seed: number
  rules: readonly RuleState[]
  /** The oldest first. */
  held: readonly HeldStanza[]
}

/** The result of applying all rules to a stanza, or to a request to the media host. */
export interface Fate {
  stanza: Node
  copies: number
  delayMs: number
  garbled: boolean
  /** Null: not limited. */
  bytesPerSecond: number | null
  cutAfter: boolean
  end: 'hold' | 'drop' | 'cut' | { error: string } | null
}

interface Held {
  description: HeldStanza
  goOn: () => void
}

interface LoginRefusal {
  account: string | null
  reason: string
  left: number
}

export interface Restriction {
  endsAt: number
  /** True if the client learns when it ends. */
  saysUntil: boolean
}

export const DEFAULT_SEED = 1

export class Scenario implements Gate {
  /** How many QR codes a client is offered. Null: as many as WhatsApp offers. */
  qrCodes: number | null = null
  readonly linkingFailures = new LinkingFailures()
  readonly passkeyPlays = new LinkingFailures<PasskeyPlay>()
  /** True if a newly linked client must reconnect over a new socket. */
  restarts = true
  /** True if a client has to request the stanzas that were kept for it. */
  batches = false
  /** True if the account's phone answers a client's requests for copies of messages. */
  phoneCopies = false
  /** The phone's answer to a client that asks it to upload a media file again. */
  mediaRetries: MediaRetryAnswer = 'upload'
  /** The result of looking up a number: another number, or none. */
  readonly lookUps = new Map<string, string | null>()
  /** By phone number: accounts that may not start new chats. */
  readonly restrictions = new Map<string, Restriction>()
  readonly #agenda: Agenda
  #seed = DEFAULT_SEED
  #random = createRandom(DEFAULT_SEED)
  #lastRule = 0
  #rules: ActiveRule[] = []
  #held: Held[] = []
  #loginRefusals: LoginRefusal[] = []

  constructor(agenda: Agenda) {
    this.#agenda = agenda
  }

  get isSet(): boolean {
    return this.#rules.length > 0
  }

  setSeed(seed: number): void {
    this.#seed = seed
    this.#random = createRandom(seed)
  }

  state(): ScenarioState {
    return {
      seed: this.#seed,
      rules: this.#rules.map(({ id, rule, fitted, applied }) => ({ id, rule, fitted, applied })),
      held: this.#held.map(({ description }) => description),
    }
  }

  addRule(rule: Rule): number {
    const id = ++this.#lastRule
    this.#rules.push(new ActiveRule(id, rule, Date.now()))
    return id
  }

  removeRule(id: number): void {
    this.#rules = this.#rules.filter(rule => rule.id !== id)
  }

  /** Releases the oldest `count` held stanzas. Returns how many were released. */
  release(count = Number.POSITIVE_INFINITY): number {
    const released = this.#held.splice(0, count)
    for (const { goOn } of released) goOn()
    return released.length
  }

  refuseLogins(reason: string, count: number, account: string | null): void {
    this.#loginRefusals.push({ account, reason, left: count })
  }

  /** The reason for refusing this login. Null if it is not refused. */
  takeLoginRefusal(phone: string): string | null {
    const refusal = this.#loginRefusals.find(({ account, left }) => left > 0 && (account ?? phone) === phone)
    if (!refusal) return null
    refusal.left--
    return refusal.reason
  }

  /** Stops misbehaving and releases the held stanzas. */
  clear(): void {
    this.#rules = []
    this.#loginRefusals = []
    this.qrCodes = null
    this.linkingFailures.clear()
    this.passkeyPlays.clear()
    this.restarts = true
    this.batches = false
    this.phoneCopies = false
    this.mediaRetries = 'upload'
    this.lookUps.clear()
    this.restrictions.clear()
    this.release()
  }

  leave(connection: Connection, stanza: Node): void {
    const fate = this.#judge(connection.phone, stanza, 'out')
    const goOn = () => {
      for (let copy = 0; copy < fate.copies; copy++) connection.write(fate.stanza)
      if (fate.cutAfter) connection.close()
    }
    if (this.#continuesNow(connection, fate, 'out', goOn)) goOn()
  }

  async arrive(connection: Connection, stanza: Node): Promise<void> {
    const fate = this.#judge(connection.phone, stanza, 'in')
    const goOn = async () => {
      for (let copy = 0; copy < fate.copies; copy++) await connection.accept(fate.stanza)
      if (fate.cutAfter) connection.close()
    }
    if (this.#continuesNow(connection, fate, 'in', () => connection.enqueue(goOn))) await goOn()
  }

  /** What happens to a request to the media host, described as a stanza. Resolves once it may continue. */
  async judgeRequest(request: Node, phone: string | null): Promise<Fate> {
    const fate = this.#judge(phone, request, 'in')
    if (fate.end === 'hold') await new Promise<void>(resolve => this.#hold(phone, request, 'in', resolve))
    else if (fate.delayMs > 0) await new Promise<void>(resolve => this.#agenda.add(Date.now() + fate.delayMs, resolve))
    return fate
  }

  #judge(phone: string | null, stanza: Node, direction: Direction): Fate {
    const end = null
    const fate: Fate = { stanza, copies: 1, delayMs: 0, garbled: false, bytesPerSecond: null, cutAfter: false, end }
    const now = Date.now()
    if (this.#rules.some(rule => rule.hasEnded(now))) this.#rules = this.#rules.filter(rule => !rule.hasEnded(now))
    for (const rule of this.#rules) {
      if (!rule.applies(fate.stanza, direction, phone, this.#random)) continue
      this.#apply(rule.rule, fate, direction)
      if (fate.end) break
    }
    return fate
  }

  #apply({ do: action }: Rule, fate: Fate, direction: Direction): void {
    if (action === 'hold' || action === 'drop' || action === 'cut') fate.end = action
    else if (action === 'double') fate.copies++
    else if (action === 'cut_after') fate.cutAfter = true
    else if (action === 'garble') {
      fate.garbled = true
      fate.stanza = garbled(fate.stanza)
    } else if ('without' in action) fate.stanza = stripped(fate.stanza, action.without)
    else if ('set' in action)
      fate.stanza = node(fate.stanza.tag, { ...fate.stanza.attrs, ...action.set }, fate.stanza.content)
    else if ('noDevicesOf' in action) fate.stanza = withoutDevicesOf(fate.stanza, action.noDevicesOf)
    else if ('delayMs' in action) fate.delayMs += action.delayMs + (action.jitterMs ?? 0) * this.#random()
    else if ('bytesPerSecond' in action) fate.bytesPerSecond = action.bytesPerSecond
    else if ('address' in action) fate.stanza = addressed(fate.stanza, action.address, action.alternate ?? true)
    else if ('lid' in action) fate.stanza = renamed(fate.stanza, action, direction)
    else if (direction === 'out') fate.stanza = failed(fate.stanza, action.error)
    else fate.end = action
  }

  /** Returns true if the stanza continues at once. Otherwise holds, drops or delays it, or ends the socket. */
  #continuesNow(connection: Connection, fate: Fate, direction: Direction, goOnLater: () => void): boolean {
    const { end, stanza, delayMs } = fate
    if (end === 'hold') this.#hold(connection.phone, stanza, direction, goOnLater)
    else if (end === 'cut') connection.close()
    else if (end && end !== 'drop') this.#refuse(connection, stanza, end.error)
    else if (!end && delayMs > 0) this.#agenda.add(Date.now() + delayMs, goOnLater)
    return !end && delayMs === 0
  }

  #hold(phone: string | null, { tag, attrs }: Node, direction: Direction, goOn: () => void): void {
    this.#held.push({ description: { direction, account: phone, stanza: tag, attrs: { ...attrs } }, goOn })
  }

  #refuse(connection: Connection, stanza: Node, error: string): void {
    const answer = refusalOf(stanza, error)
    if (answer) connection.write(answer)
  }
}

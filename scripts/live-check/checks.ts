import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BinaryNode } from 'baileys'
import { type IncomingMessage, isChange } from '../../src/domain/incoming-message.ts'
import { numberOf, userOf } from '../../src/whatsapp/baileys/addresses.ts'
import type { Acknowledgement, Link } from '../../src/whatsapp/baileys/link.ts'
import type { Receipt } from '../../src/whatsapp/baileys/parsing/receipt.ts'
import { type Account, createDraft, type Draft } from './account.ts'
import type { Findings } from './findings.ts'
import type { Operator } from './operator.ts'
import { PasskeySteps } from './passkey-steps.ts'
import { addressKind, shapeOf } from './shape.ts'

export interface CheckOptions {
  account: Account
  operator: Operator
  /** The number of the second phone, digits only. */
  second: string
  /** Whether the number is linked with its passkey, if WhatsApp asks for it. */
  passkey: boolean
  findings: Findings
  /** After this time without another receipt or message, no further one is expected. */
  quietMs: number
  /** Collects the values that must not appear in a report. */
  secrets: Set<string>
  say(line: string): void
  signal?: AbortSignal | undefined
}

const LINKED_WITHIN_MS = 10 * 60_000
const CONNECTED_WITHIN_MS = 90_000
const ANSWERED_WITHIN_MS = 30_000
const REACHED_WITHIN_MS = 60_000
const POLL_EVERY_MS = 50

/**
 * Links the spare number, runs every check and logs out. Something that does not happen is a finding too. The checks end
 * early if the number cannot be linked or a person stops them.
 * @throws Error with the reason for ending early
 */
export function runChecks(options: CheckOptions): Promise<void> {
  return new Checks(options).run()
}

class Checks {
  readonly #options: CheckOptions
  readonly #stanzas: BinaryNode[] = []
  readonly #acks: Acknowledgement[] = []
  readonly #receipts: Receipt[] = []
  readonly #received: IncomingMessage[] = []
  #lastReceiptAt = 0

  constructor(options: CheckOptions) {
    this.#options = options
    this.#keepSecret(options.second)
  }

  async run(): Promise<void> {
    try {
      await this.#link()
      const link = await this.#login()
      await this.#sendToSelf(link)
      await this.#sendToSecond(link)
      await this.#receive()
      await this.#beAway()
    } finally {
      await this.#logOut()
    }
  }

  async #link(): Promise<void> {
    const { account, operator, passkey, findings, secrets, say } = this.#options
    say('Linking the spare number …')
    await account.connect()
    const steps = new PasskeySteps({ account, operator, findings, secrets })
    let shown: string | null = null
    let scannedAt = performance.now()
    const connected = await this.#until(LINKED_WITHIN_MS, async () => {
      const record = await account.state()
      const { state, goal, qr, reason } = record
      if (goal === 'idle') {
        if (passkey) steps.note(false)
        throw new Error(reason)
      }
      await steps.take(record)
      if (qr !== null && qr !== shown) {
        shown = qr
        await operator.scan(qr)
        scannedAt = performance.now()
      }
      return state === 'connected'
    })
    findings.note('Linking', 'connected', connected)
    if (passkey) steps.note(connected)
    findings.took('Linking', 'from the code to the connection', scannedAt)
    if (!connected) throw new Error(`The number was not linked: ${(await account.state()).reason}`)
    this.#keepSecret((await account.state()).phone)
    await account.disconnect()
  }

  async #login(): Promise<Link> {
    const { account, findings, say } = this.#options
    say('Logging in again with the stored credentials …')
    const startedAt = performance.now()
    const link = await account.openLink(
      {
        qr: () => undefined,
        called: async () => false,
        newCode: () => undefined,
        passkey: () => undefined,
        paired: () => undefined,
        opened: () => undefined,
        closed: () => undefined,
        groupChanged: async () => undefined,
        groupsListed: () => undefined,
        contacts: () => undefined,
        addressBookReadable: () => undefined,
        addressBookChanging: async () => undefined,
        addressBookReported: () => undefined,
        frame: () => undefined,
        undecryptable: () => undefined,
        restriction: () => undefined,
        acknowledged: ack => void this.#acks.push(ack),
        receipt: async receipt => {
          this.#receipts.push(receipt)
          this.#lastReceiptAt = performance.now()
        },
        received: async message => {
          if (!isChange(message) && !message.written) this.#received.push(message)
        },
        isRecorded: async () => false,
      },
      stanza => void this.#stanzas.push(stanza),
    )
    const opened = await this.#until(CONNECTED_WITHIN_MS, () => link.isOpen || link.closed.aborted)
    if (!opened || link.closed.aborted) throw new Error('The second login failed.')
    findings.took('Login', 'with stored credentials', startedAt)
    findings.note('Login', 'success', this.#shapes('success'))
    findings.note('Login', 'the account has a LID', link.self.lid !== undefined)
    for (const jid of [link.self.id, link.self.lid]) this.#keepSecret(userOf(jid))
    return link
  }

  async #sendToSelf(link: Link): Promise<void> {
    const { say } = this.#options
    say('Sending a text to itself …')
    const own = numberOf(link.self.id)
    if (!own) throw new Error('The account has no number.')
    const draft = createDraft(`Pombal live check: to itself (${mark()})`)
    if (await this.#send('A text to itself', link, own, draft)) await this.#noteReceipts('A text to itself', draft)
  }

  async #sendToSecond(link: Link): Promise<void> {
    const { operator, second, findings, say } = this.#options
    const check = 'A text to the second number'
    say('Sending a text to the second number …')
    const sign = mark()
    const draft = createDraft(`Pombal live check: ${sign}`)
    const address = await this.#send(check, link, second, draft)
    if (!address) return
    await this.#until(REACHED_WITHIN_MS, () => this.#reached(draft).length > 0)
    await operator.read()
    await this.#until(REACHED_WITHIN_MS, () => this.#reached(draft).includes('read'))
    await this.#noteReceipts(check, draft)
    say('Sending it once more under the same id …')
    const again = 'The same id once more'
    const before = this.#receipts.length
    await this.#write(again, link, address, draft)
    await this.#quiet()
    findings.note(again, 'more receipts', kinds(this.#receipts.slice(before)))
    findings.note(again, 'times it shows on the phone', String(await operator.countShown(sign)))
  }

  async #receive(): Promise<void> {
    const { account, operator, second, findings } = this.#options
    const check = 'A message to us'
    const seen = this.#stanzas.length
    await operator.write('now')
    const arrived = await this.#until(REACHED_WITHIN_MS, () => this.#received.length > 0)
    findings.note(check, 'arrived', arrived)
    findings.note(check, 'stanza', this.#shapes('message', seen))
    // Somebody else may have written to the number.
    const message = this.#received.find(({ from }) => from === second) ?? this.#received[0]
    findings.note(check, 'type', message?.type ?? 'none')
    findings.note(check, 'the sender is known by', message?.addressing === 'lid' ? 'LID' : 'number')
    findings.note(check, 'it is the second number', message?.from === second)
    findings.note(check, 'its LID is known', await account.knowsLidOf(second))
  }

  async #beAway(): Promise<void> {
    const { account, operator, findings, say } = this.#options
    const check = 'A message while we were away'
    await account.disconnect()
    await operator.write('while away')
    say('Connecting again …')
    const before = await account.countReceived()
    const startedAt = performance.now()
    await account.connect()
    const back = await this.#until(CONNECTED_WITHIN_MS, async () => (await account.state()).state === 'connected')
    findings.note(check, 'connected again', back)
    findings.took(check, 'until connected', startedAt)
    await this.#until(REACHED_WITHIN_MS, async () => (await account.countReceived()) > before)
    findings.took(check, 'until it was reported', startedAt)
    await sleep(this.#options.quietMs)
    findings.note(check, 'times it was reported', String((await account.countReceived()) - before))
  }

  async #logOut(): Promise<void> {
    const { account, findings, say } = this.#options
    say('Logging out …')
    await account.disconnect()
    await account.logOut()
    // Not `#until`, which throws once somebody has stopped the checks.
    const deadline = performance.now() + ANSWERED_WITHIN_MS
    while ((await account.state()).goal !== 'idle' && performance.now() < deadline) await sleep(POLL_EVERY_MS)
    findings.note('Logging out', 'ends in', (await account.state()).state)
    await account.disconnect()
  }

  // ── Sending ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** @returns the address, or null if the number is not on WhatsApp */
  async #send(check: string, link: Link, number: string, draft: Draft): Promise<string | null> {
    const { findings } = this.#options
    const found = await link.lookUp(number)
    findings.note(check, 'look-up', found.kind)
    if (found.kind !== 'found') return null
    findings.note(check, 'found by', addressKind(found.address))
    findings.note(check, 'found under the number asked for', userOf(found.address) === number)
    this.#keepSecret(userOf(found.address))
    await this.#write(check, link, found.address, draft)
    return found.address
  }

  async #write(check: string, link: Link, address: string, { whatsappId, content }: Draft): Promise<void> {
    const { findings } = this.#options
    this.#keepSecret(whatsappId)
    const seen = this.#stanzas.length
    const acks = this.#acks.length
    const startedAt = performance.now()
    await link.write(address, content, whatsappId, async () => undefined)
    const own = () => this.#acks.slice(acks).find(ack => ack.whatsappId === whatsappId)
    await this.#until(ANSWERED_WITHIN_MS, () => own() !== undefined)
    const ack = own()
    findings.took(check, 'until acknowledged', startedAt)
    findings.note(
      check,
      'acknowledged',
      ack === undefined ? 'no' : ack.error === undefined ? 'yes' : `error ${ack.error}`,
    )
    findings.note(check, 'reports other devices', ack?.devicesHash !== undefined)
    findings.note(check, 'acknowledgement', this.#shapes('ack', seen))
  }

  async #noteReceipts(check: string, draft: Draft): Promise<void> {
    const { findings } = this.#options
    await this.#quiet()
    findings.note(check, 'receipts', kinds(this.#receipts.filter(receipt => isOf(receipt, draft))))
    const stanzas = this.#stanzas.filter(({ tag, attrs }) => tag === 'receipt' && attrs['id'] === draft.whatsappId)
    findings.note(check, 'receipt stanzas', distinct(stanzas.map(shapeOf)))
  }

  #reached(draft: Draft): string[] {
    return this.#receipts.filter(receipt => isOf(receipt, draft)).map(({ reached }) => reached)
  }

  // ── Observing ────────────────────────────────────────────────────────────────────────────────────────────────────

  #shapes(tag: string, from = 0): string {
    return distinct(this.#stanzas.slice(from).flatMap(stanza => (stanza.tag === tag ? [shapeOf(stanza)] : [])))
  }

  async #quiet(): Promise<void> {
    const since = performance.now()
    const last = () => Math.max(since, this.#lastReceiptAt)
    await this.#until(REACHED_WITHIN_MS, () => performance.now() - last() > this.#options.quietMs)
  }

  #keepSecret(user: string | null | undefined): void {
    if (user) this.#options.secrets.add(user)
  }

  /** @returns false if the condition was not met in time. @throws AbortError if somebody stopped the checks */
  async #until(withinMs: number, condition: () => boolean | Promise<boolean>): Promise<boolean> {
    const deadline = performance.now() + withinMs
    while (!(await condition())) {
      if (performance.now() > deadline) return false
      await sleep(POLL_EVERY_MS, undefined, { signal: this.#options.signal })
    }
    return true
  }
}

/** A person can find the text on the phone by this mark. */
function mark(): string {
  return randomBytes(3).toString('hex').toUpperCase()
}

function isOf(receipt: Receipt, draft: Draft): boolean {
  return receipt.whatsappIds.includes(draft.whatsappId)
}

function kinds(receipts: readonly Receipt[]): string {
  return distinct(receipts.map(({ reached }) => reached))
}

function distinct(values: readonly string[]): string {
  return [...new Set(values)].join(', ') || 'none'
}

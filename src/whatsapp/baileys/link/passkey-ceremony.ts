import { type AuthenticationCreds, type BinaryNode, getBinaryNodeChild, S_WHATSAPP_NET, type WASocket } from 'baileys'
import {
  type PasskeyAnswer,
  type PasskeyAssertion,
  type PasskeyStep,
  parsePasskeyRequest,
} from '../../../domain/connection/passkey.ts'
import type { LinkingObstacle } from '../link-end.ts'
import { isRefusal } from '../look-up.ts'
import { createAdvSecret, deriveHandoffKey, PasskeyKeys, type PhoneKeys, parsePhoneKeys } from './passkey-keys.ts'

/** WhatsApp's web client waits two minutes for each step, which is eight times the default time for a query. */
const STEP_WITHIN_QUERIES = 8
/** How long WhatsApp accepts the secret of the scanned code as a proof (WhatsApp's web client). */
const HANDOFF_MS = 300_000
const MAX_REFUSALS = 3

/** A step to show. `isRepeated`: WhatsApp has refused the answer before. */
export interface CeremonyStep extends Omit<PasskeyStep, 'expiresAt'> {
  validMs: number
  isRepeated: boolean
}

interface CeremonyOptions {
  creds: AuthenticationCreds
  closed: AbortSignal
  queryTimeoutMs: number
  /** Runs a part of the ceremony. A failure ends the part. */
  run(work: () => Promise<unknown>): void
  onStep(step: CeremonyStep): void
  onObstacle(obstacle: LinkingObstacle): void
}

/**
 * Links an account whose owner must use its passkey. Baileys does not support this. WhatsApp asks for the passkey
 * (`asked`) and gets the assertion and our commitment (`sent`). Then the phone's keys arrive. If we could not prove
 * that we showed the code that was scanned, a person compares eight characters (`code`). Finally the phone gets our
 * keys (`finishing`) and confirms the linking.
 *
 * The ceremony ends with its socket, and the next attempt begins with a new code.
 */
export class PasskeyCeremony {
  readonly #options: CeremonyOptions
  readonly #socket: WASocket
  readonly #advSecret = createAdvSecret()
  readonly #begunAt = performance.now()
  #handoffKey: Buffer | null
  #stage: 'asked' | 'sent' | 'code' | 'finishing' = 'asked'
  #refusals = 0
  #keys: PasskeyKeys | null = null
  #isProven = false
  /** WhatsApp has accepted the assertion. */
  #isAccepted = false
  /** The phone's keys. They may arrive before the assertion is accepted. */
  #phone: PhoneKeys | null = null
  #timer: NodeJS.Timeout | undefined

  constructor(socket: WASocket, options: CeremonyOptions) {
    this.#socket = socket
    this.#options = options
    this.#handoffKey = deriveHandoffKey(options.creds.advSecretKey)
    options.closed.addEventListener('abort', () => clearTimeout(this.#timer), { once: true })
  }

  /** WhatsApp asks for the passkey, for the first time or again. */
  asked(notification: BinaryNode): void {
    if (this.#stage !== 'asked') return
    const options = bytesOf(notification, 'passkey_request_options')
    if (options) this.#ask(options)
    else this.#run(() => this.#fetchOptions())
  }

  answer(answer: PasskeyAnswer): void {
    if (answer.stage === 'assertion' && this.#stage === 'asked') this.#run(() => this.#send(answer.assertion))
    if (answer.stage === 'code' && this.#stage === 'code') this.#run(() => this.#finish())
  }

  /** The phone has sent its keys. */
  continued(notification: BinaryNode): void {
    const phone = parsePhoneKeys(bytesOf(notification, 'primary_ephemeral_identity') ?? new Uint8Array())
    if (phone === null || this.#phone !== null) return
    this.#phone = phone
    if (this.#isAccepted) this.#run(() => this.#compare(phone))
  }

  /** The phone has confirmed the linking. */
  confirmed(): void {
    clearTimeout(this.#timer)
  }

  async #fetchOptions(): Promise<void> {
    const answer = await this.#query('get', { tag: 'passkey_request_options', attrs: {} })
    this.#ask(bytesOf(answer, 'passkey_request_options') ?? new Uint8Array())
  }

  #ask(options: Uint8Array): void {
    const parsed = parsePasskeyRequest(Buffer.from(options).toString())
    if (parsed === null) {
      this.#options.onObstacle('unfinished')
      return
    }
    const { request, validMs } = parsed
    this.#options.onStep({ stage: 'assertion', request, code: null, validMs, isRepeated: this.#refusals > 0 })
    this.#limit(validMs, 'passkey_expired')
  }

  async #send(assertion: PasskeyAssertion): Promise<void> {
    this.#stage = 'sent'
    clearTimeout(this.#timer)
    const ref = bytesOf(await this.#query('get', { tag: 'ref', attrs: {} }), 'ref')
    this.#keys = new PasskeyKeys(Buffer.from(ref ?? []).toString())
    const proof = this.#prove(this.#keys)
    this.#isProven = proof !== null
    const content = [
      child('credential_id', Buffer.from(assertion.rawId, 'base64url')),
      child('webauthn_assertion', Buffer.from(JSON.stringify(assertion))),
      child('prologue_payload', this.#keys.payload),
      ...(proof ? [child('pairing_handoff_proof', proof)] : []),
    ]
    try {
      await this.#query('set', { tag: 'passkey_prologue', attrs: {}, content })
    } catch (error) {
      if (!isRefusal(error)) throw error
      return this.#refused()
    }
    this.#isAccepted = true
    this.#limit(this.#stepMs, 'unfinished')
    if (this.#phone) await this.#compare(this.#phone)
  }

  /** Does the same as WhatsApp's web client: asks for new options, and a person compares a code in the next attempt. */
  async #refused(): Promise<void> {
    this.#refusals += 1
    this.#handoffKey = null
    this.#phone = null
    if (this.#refusals >= MAX_REFUSALS) return this.#options.onObstacle('passkey_refused')
    this.#stage = 'asked'
    await this.#fetchOptions()
  }

  #prove(keys: PasskeyKeys): Buffer | null {
    const isRecent = performance.now() - this.#begunAt < HANDOFF_MS
    return this.#handoffKey !== null && isRecent ? keys.prove(this.#handoffKey) : null
  }

  async #compare(phone: PhoneKeys): Promise<void> {
    const keys = this.#keys!
    await this.#query('set', child('companion_nonce', keys.nonce))
    if (this.#isProven) return this.#finish()
    this.#stage = 'code'
    const validMs = this.#stepMs
    const code = keys.codeWith(phone)
    this.#options.onStep({ stage: 'code', request: null, code, validMs, isRepeated: false })
    this.#limit(validMs, 'passkey_expired')
  }

  async #finish(): Promise<void> {
    this.#stage = 'finishing'
    const { creds, onObstacle } = this.#options
    // Baileys reads the secret when the phone confirms, and stores it with the account.
    creds.advSecretKey = this.#advSecret
    this.#limit(this.#stepMs, 'unfinished')
    try {
      const request = this.#keys!.sealRequest(this.#phone!, creds, this.#advSecret)
      await this.#query('set', child('encrypted_pairing_request', request))
    } catch (error) {
      if (!isRefusal(error)) throw error
      onObstacle('passkey_refused')
    }
  }

  get #stepMs(): number {
    return STEP_WITHIN_QUERIES * this.#options.queryTimeoutMs
  }

  #limit(ms: number, obstacle: LinkingObstacle): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#options.onObstacle(obstacle), ms).unref()
  }

  #query(type: 'get' | 'set', content: BinaryNode): Promise<BinaryNode> {
    return this.#socket.query({
      tag: 'iq',
      attrs: { to: S_WHATSAPP_NET, type, xmlns: 'md' },
      content: [content],
    })
  }

  #run(work: () => Promise<void>): void {
    const { run, closed, onObstacle } = this.#options
    run(async () => {
      try {
        await work()
      } catch (error) {
        if (!closed.aborted) onObstacle('unfinished')
        throw error
      }
    })
  }
}

function child(tag: string, content: Uint8Array): BinaryNode {
  return { tag, attrs: {}, content }
}

function bytesOf(node: BinaryNode, tag: string): Uint8Array | undefined {
  const content = getBinaryNodeChild(node, tag)?.content
  if (typeof content === 'string') return Buffer.from(content)
  return content instanceof Uint8Array ? content : undefined
}

import type { StoredConnection } from '../../domain/connection/connection.ts'
import type { Connections } from '../../store/connections/connections.ts'
import type { Lease } from '../../store/leases/leases.ts'
import { untilStored } from '../../store/until-stored.ts'
import type { CeremonyStep } from '../baileys/link/passkey-ceremony.ts'
import type { Link } from '../baileys/link.ts'
import { NO_CODES, type Status } from './status.ts'

type Why = Pick<StoredConnection, 'cause' | 'reason'>

const ASKED: Why = {
  cause: 'passkey_required',
  reason: 'WhatsApp asks for the passkey of this account. Use it on the page of WhatsApp Web, as the panel shows.',
}
const REFUSED: Why = {
  cause: 'passkey_refused',
  reason:
    'WhatsApp did not accept the passkey. Try again with the passkey of this account, in the browser or on the phone that has it.',
}
const COMPARE: Why = {
  cause: 'passkey_code',
  reason: 'Compare this code with the one on the phone. Confirm only if both are the same.',
}
const PASSED_ON: Why = {
  cause: 'passkey_sent',
  reason: 'WhatsApp is checking the answer. Keep WhatsApp open on the phone.',
}

export interface PasskeyStepsOptions {
  lease: Lease
  connections: Connections
  status: Status
  now: () => number
  signal: AbortSignal
}

/** Shows the steps of a linking with a passkey, and passes the answers of people on to the link. */
export class PasskeySteps {
  readonly #options: PasskeyStepsOptions
  /** The link that waits for an answer. */
  #asking: Link | null = null

  constructor(options: PasskeyStepsOptions) {
    this.#options = options
  }

  async show(link: Link, { validMs, isRepeated, ...step }: CeremonyStep): Promise<void> {
    const { status, now } = this.#options
    this.#asking = link
    const why = step.stage === 'code' ? COMPARE : isRepeated ? REFUSED : ASKED
    const passkey = { ...step, expiresAt: now() + Math.round(validMs) }
    await status.record({ ...NO_CODES, state: 'linking', ...why, passkey })
  }

  /** Takes the answer from the store and passes it on. After a kill in between, the number is linked with a new code. */
  async passOn(goalVersion: number): Promise<void> {
    const link = this.#asking
    if (link === null || link.closed.aborted) return
    const { lease, connections, status, signal } = this.#options
    const answer = await untilStored(() => connections.takePasskeyAnswer(lease, goalVersion), signal)
    if (answer === null) return
    this.#asking = null
    await status.record({ ...NO_CODES, state: 'linking', ...PASSED_ON })
    link.linking?.answerPasskey(answer)
  }
}

import type { PasskeyRequest } from '../../src/domain/connection/passkey.ts'
import type { ConnectionRecord } from '../../src/store/connections/connections.ts'
import type { Account } from './account.ts'
import type { Findings } from './findings.ts'
import type { Operator } from './operator.ts'

const CHECK = 'Passkey'

interface PasskeyStepsOptions {
  account: Account
  operator: Operator
  findings: Findings
  secrets: Set<string>
}

/** Takes the steps of a linking with a passkey, together with the person who has it. */
export class PasskeySteps {
  readonly #options: PasskeyStepsOptions
  /** The challenge or code of the latest step. */
  #taken: string | null = null
  #request: PasskeyRequest | null = null
  #answers = 0
  #isCompared = false
  #answeredAt = 0

  constructor(options: PasskeyStepsOptions) {
    this.#options = options
  }

  /** @throws Error if the codes differ */
  async take({ passkey: step }: ConnectionRecord): Promise<void> {
    const what = step?.request?.challenge ?? step?.code ?? null
    if (!step || what === null || what === this.#taken) return
    this.#taken = what
    this.#options.secrets.add(what)
    if (step.request) await this.#answer(step.request)
    else await this.#compare(what)
  }

  async #answer(request: PasskeyRequest): Promise<void> {
    const { account, operator, secrets } = this.#options
    this.#request = request
    const assertion = await operator.passkey(request)
    const { clientDataJSON, authenticatorData, signature, userHandle } = assertion.response
    for (const value of [assertion.id, clientDataJSON, authenticatorData, signature, userHandle]) {
      if (value) secrets.add(value)
    }
    this.#answers += 1
    this.#answeredAt = performance.now()
    await account.store.connections.answerPasskey(account.instanceId, { stage: 'assertion', assertion })
  }

  async #compare(code: string): Promise<void> {
    const { account, operator } = this.#options
    this.#isCompared = true
    if (!(await operator.isSameCode(code)))
      throw new Error('The codes differ: somebody may be intercepting the connection.')
    await account.store.connections.answerPasskey(account.instanceId, { stage: 'code' })
  }

  /** Notes the findings, once the number is linked or the linking has failed. */
  note(isLinked: boolean): void {
    const { findings } = this.#options
    findings.note(CHECK, 'WhatsApp asks for it', this.#request !== null)
    if (this.#request === null) return
    const { rpId, userVerification, allowCredentials } = this.#request
    const passkeys = allowCredentials.length > 0 ? 'listed' : 'not listed'
    findings.note(CHECK, 'request', `rpId=${rpId} userVerification=${userVerification}, the passkeys are ${passkeys}`)
    findings.note(CHECK, 'answers', String(this.#answers))
    findings.note(CHECK, 'a code is compared', this.#isCompared)
    if (isLinked) findings.took(CHECK, 'from the answer to the connection', this.#answeredAt)
  }
}

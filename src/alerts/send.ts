import type { AlertTarget } from '../store/alerts/alerts.ts'
import type { Poster } from '../webhooks/posting/post.ts'
import { plainText, REQUESTS } from './channels.ts'
import type { AlertMessage } from './message.ts'

/** The mail server that sends alerts by e-mail. */
interface MailServer {
  /** `smtp://user:password@host:587` or `smtps://…`. */
  url: string
  from: string
}

export interface SenderOptions {
  post: Pick<Poster, 'send'>
  /** Null: alerts cannot be sent by e-mail. */
  mail: MailServer | null
  version: string
  now: () => number
}

/** Null if the message arrived; otherwise a sentence that says why not, without secrets. */
type SendError = string | null

/** That of webhooks may be longer than the claim of the notices (`CLAIMED_FOR_MS`), or too short for a chat service. */
const POST_TIMEOUT_MS = 10_000
/** For each step: the connection, the greeting, an answer. */
const MAIL_STEP_TIMEOUT_MS = 10_000
/** For all steps together. Shorter than the claim of the notices: otherwise another node would send the same e-mail. */
const MAIL_TIMEOUT_MS = 30_000
const MAX_ERROR = 300

/** Sends a message through the channel of a target. */
export class AlertSender {
  readonly #options: SenderOptions

  constructor(options: SenderOptions) {
    this.#options = options
  }

  get canMail(): boolean {
    return this.#options.mail !== null
  }

  /** Never rejects. */
  async send(
    { channel, address }: Pick<AlertTarget, 'channel' | 'address'>,
    message: AlertMessage,
  ): Promise<SendError> {
    try {
      if (channel === 'email') return await this.#mail(address.to!, message)
      const { post, now, version } = this.#options
      const request = REQUESTS[channel](message, { address, now: now(), version })
      const outcome = await post.send({ ...request, timeoutMs: POST_TIMEOUT_MS })
      if (outcome.kind === 'failed') return `The request failed: ${outcome.error}.`
      if (outcome.status >= 200 && outcome.status < 300) return null
      return `Answered ${outcome.status}${outcome.excerpt ? `: ${outcome.excerpt.slice(0, MAX_ERROR)}` : '.'}`
    } catch (error) {
      return (error as Error).message.slice(0, MAX_ERROR)
    }
  }

  async #mail(to: string, message: AlertMessage): Promise<SendError> {
    const { mail } = this.#options
    if (mail === null) return 'SMTP_URL is not set.'
    const limits = {
      connectionTimeout: MAIL_STEP_TIMEOUT_MS,
      greetingTimeout: MAIL_STEP_TIMEOUT_MS,
      socketTimeout: MAIL_STEP_TIMEOUT_MS,
    }
    // Loaded when the first e-mail is sent: most installations send none.
    const { createTransport } = await import('nodemailer')
    const signal = AbortSignal.timeout(MAIL_TIMEOUT_MS)
    const transport = createTransport({ url: mail.url, ...limits })
    try {
      await transport.sendMail({
        from: mail.from,
        to,
        subject: message.title,
        text: plainText(message),
        messageId: `<${message.id}@pombal>`,
        signal,
      })
      return null
    } catch (error) {
      if (signal.aborted) return `The mail server did not take the message within ${MAIL_TIMEOUT_MS / 1_000} s.`
      throw error
    } finally {
      transport.close()
    }
  }
}

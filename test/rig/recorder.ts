import { type Answer, eventOf, isSigned, isStandardSigned, type ReceivedRequest, Receiver } from '../receiver.ts'
import type { Arrival } from './facts.ts'
import type { Random } from './random.ts'
import { firstLineOf } from './texts.ts'

/** The longest delay of a response, so that kills interrupt attempts in flight. */
const ANSWER_WITHIN_MS = 30

export interface RecorderOptions {
  /** The number of incidents so far: starts of the service, and anything else that may repeat an attempt. */
  boot(): number
  random: Random
  onArrival(): void
}

/** A receiver that answers every request with 204 and records the arrivals in order. */
export class Recorder {
  readonly arrivals: Arrival[] = []
  readonly #reported = new Set<string>()
  readonly #options: RecorderOptions
  readonly #secrets = new Map<string, string>()
  readonly #receiver = new Receiver()

  constructor(options: RecorderOptions) {
    this.#options = options
    this.#receiver.answerWith(request => this.#record(request))
  }

  async listen(): Promise<void> {
    await this.#receiver.listen()
  }

  get url(): string {
    return this.#receiver.url
  }

  expect(instanceId: string, secret: string): void {
    this.#secrets.set(instanceId, secret)
  }

  /** Whether an event of the message has arrived. */
  hasReported(messageId: string): boolean {
    return this.#reported.has(messageId)
  }

  async close(): Promise<void> {
    await this.#receiver.close()
  }

  #record(request: ReceivedRequest): Answer {
    const { event, instanceId, data } = eventOf(request)
    const secret = this.#secrets.get(instanceId) ?? ''
    this.arrivals.push({
      instanceId,
      eventId: String(request.headers['webhook-id']),
      kind: event,
      subject: event === 'message.received' ? firstLineOf(String(data['text'])) : data.id,
      body: request.body.toString(),
      signed: isSigned(request, secret) && isStandardSigned(request, secret),
      attemptNumber: Number(request.headers['x-service-attempt']),
      boot: this.#options.boot(),
    })
    this.#reported.add(data.id)
    this.#options.onArrival()
    return { kind: 'status', status: 204, delayMs: this.#options.random.between(0, ANSWER_WITHIN_MS) }
  }
}

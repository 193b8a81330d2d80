import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { StoreKind } from '../../databases/database.ts'
import { LinkedHarness, type LinkedNumber } from '../../linked-harness.ts'
import { noteBody } from '../../logs/log-capture.ts'
import { eventOf, type ReceivedEvent } from '../../receiver.ts'
import { until } from '../../until.ts'

export interface Answered {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests compare parts of it
  body: any
}

/** A linked number with a raw client of its `/v1`. */
export class Talking implements AsyncDisposable {
  readonly harness: LinkedHarness
  readonly number: LinkedNumber

  /** Where the files of messages are. PostgreSQL has no default for it. */
  #files: string | null = null

  private constructor(harness: LinkedHarness, number: LinkedNumber) {
    this.harness = harness
    this.number = number
  }

  static async open(store: StoreKind, env: Record<string, string> = {}): Promise<Talking> {
    const files = mkdtempSync(join(tmpdir(), 'pombal-talking-'))
    const talking = await Talking.link(
      await LinkedHarness.open(store, { env: { MEDIA_URL: pathToFileURL(files).href, ...env } }),
    )
    talking.#files = files
    return talking
  }

  /** One more number. */
  static async link(harness: LinkedHarness): Promise<Talking> {
    const talking = new Talking(harness, await harness.link())
    // An endpoint that receives every kind of event.
    await talking.call('POST', `/webhooks/${talking.number.id}/endpoints`, { url: `${harness.receiver.url}/all` })
    return talking
  }

  async call(method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Answered> {
    noteBody(body)
    const response = await fetch(`${this.harness.service.url}/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.number.instance.token}`,
        ...(body && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const answer = text === '' ? {} : JSON.parse(text)
    noteBody(answer)
    return { status: response.status, headers: response.headers, body: answer }
  }

  /** Sends a text. @returns the message's ID */
  async send(body: object, headers?: Record<string, string>): Promise<string> {
    const answer = await this.call('POST', '/messages/text', body, headers)
    if (answer.status !== 202) throw new Error(`Refused: ${JSON.stringify(answer.body)}`)
    return answer.body.data.id
  }

  /** A contact writes. @returns its event's data */
  async receive(from: string, text: string, more: object = {}): Promise<ReceivedEvent['data']> {
    const { id } = await this.harness.network.writeAs({ from, to: this.number.phone, text, ...more })
    return (await this.event('message.received', data => data.id === id)).data
  }

  becomes(id: string, ...states: string[]) {
    return until(`${id} to be ${states.join(' or ')}`, async () => {
      const { body } = await this.call('GET', `/messages/${id}`)
      return states.includes(body.data?.status) && body.data
    })
  }

  /** The first event of this kind with such data that reached the endpoint for all kinds. */
  event(kind: string, fits: (data: ReceivedEvent['data']) => boolean): Promise<ReceivedEvent> {
    return until(
      `an event ${kind}`,
      () => this.events().find(({ event, data }) => event === kind && fits(data)) ?? false,
    )
  }

  events(): ReceivedEvent[] {
    const all = this.harness.receiver.requests.filter(({ path }) => path.endsWith('/all')).map(eventOf)
    return all.filter(({ instanceId }) => instanceId === this.number.id)
  }

  inbox(number: string) {
    return this.harness.network.inbox(number)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.harness[Symbol.asyncDispose]()
    if (this.#files !== null) rmSync(this.#files, { recursive: true, force: true })
  }
}

import {
  type IDataObject,
  type INodeType,
  type INodeTypeDescription,
  type IRun,
  type ITriggerFunctions,
  type ITriggerResponse,
  type JsonObject,
  NodeApiError,
  NodeConnectionTypes,
  NodeOperationError,
  sleep,
} from 'n8n-workflow'
import { EVENTS_PROPERTY } from '../shared/event-kinds'
import { CREDENTIALS, callPombal, refusalOf, retryAfterMsOf, statusOf } from '../shared/request'

/** How long the service holds a poll without events. */
const WAIT_SECONDS = 25
/** After this time without an answer, the connection counts as dead. */
const TIMEOUT_MS = 40_000
const PAGE = 200
/** From the start of a poll to the start of the next one: the polls take at most 20 of the 100 calls a minute that the instance has. */
const POLL_EVERY_MS = 3_000
/** If the answer has no `Retry-After`. */
const PAUSE_AFTER_ERROR_MS = 5_000
/** After this many refusals in a row because of other readers, the user sees an error. */
const MAX_READER_REFUSALS = 3
/** Another attempt does not help: the token was replaced or may not read events, or the address is wrong. */
const PERMANENT = new Set([401, 403, 404])
const CURSOR_EXPIRED = 410
/** The digits of the time in an event ID, in base 32. */
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz'
const TIME_DIGITS = 10

interface FeedEvent {
  id: string
  cursor: string
  body: IDataObject & { event: string }
}

interface Page {
  data: FeedEvent[]
  nextCursor: string
}

/**
 * Reads the feed by long polls, so n8n needs no public address. Events start the workflow one at a time, in their order.
 *
 * n8n stores the static data when a workflow starts. At that time the data has the cursor of the last event whose run
 * has ended, so no event is lost. After a restart of n8n, the last event is read again. n8n recognises it by its key,
 * as long as it keeps the run.
 *
 * Beside the cursor is the ID of the last event that started a run. Before the first run of a trigger that starts with new
 * events, it is the time of the activation in the form of an ID. If the cursor has expired, all stored events are read
 * again, and the events up to this ID are skipped.
 */
export class PombalTrigger implements INodeType {
  description: INodeTypeDescription = {
    displayName: 'Pombal Trigger',
    name: 'pombalTrigger',
    icon: { light: 'file:../Pombal/pombal.svg', dark: 'file:../Pombal/pombal.dark.svg' },
    group: ['trigger'],
    version: 1,
    subtitle: '={{$parameter["events"].join(", ")}}',
    description: 'Starts the workflow with WhatsApp messages and other events of Pombal. Needs no public address.',
    defaults: { name: 'Pombal Trigger' },
    inputs: [],
    outputs: [NodeConnectionTypes.Main],
    credentials: [{ name: CREDENTIALS, required: true }],
    properties: [
      EVENTS_PROPERTY,
      {
        displayName: 'Start With',
        name: 'startWith',
        type: 'options',
        options: [
          { name: 'New Events', value: 'latest', description: 'Events that are recorded from now on' },
          { name: 'All Stored Events', value: 'oldest', description: 'Every event that the service still has' },
        ],
        default: 'latest',
        description: 'Where to begin when the workflow is activated for the first time, or with another instance',
      },
    ],
  }

  async trigger(this: ITriggerFunctions): Promise<ITriggerResponse> {
    const reader = new FeedReader(this)
    if (this.getMode() === 'manual') {
      return { manualTriggerFunction: () => reader.readOne(), closeFunction: async () => reader.stop() }
    }
    await reader.begin()
    void reader.run()
    return { closeFunction: async () => reader.stop() }
  }
}

class FeedReader {
  readonly #context: ITriggerFunctions
  readonly #kinds: ReadonlySet<string>
  readonly #stopping = new AbortController()
  /** Whether `#cursor` belongs to the instance of the credential. */
  #hasPlace = false
  /** The cursor of the last event whose run has ended. Empty: before the oldest event. */
  #cursor = ''
  /** If all stored events are read again, those up to this ID are skipped: they have started a run, or are older than the activation. */
  #startedUntil = ''
  /** When the last poll began, by `performance.now()`. */
  #polledAt = Number.NEGATIVE_INFINITY
  /** The number of `too_many_readers` refusals in a row. */
  #readerRefusals = 0

  constructor(context: ITriggerFunctions) {
    this.#context = context
    this.#kinds = new Set(context.getNodeParameter('events', []) as string[])
  }

  /** Ends the open poll, so another reader of the instance can begin. */
  stop(): void {
    this.#stopping.abort()
  }

  get #isStopped(): boolean {
    return this.#stopping.signal.aborted
  }

  /**
   * n8n stores the static data after the activation, so events that come before the first run are not lost either.
   * @throws NodeOperationError if too many others read the events
   * @throws NodeApiError if it cannot find out where to begin
   */
  async begin(): Promise<void> {
    const { cursor } = this.#context.getWorkflowStaticData('node')
    while (!this.#isStopped) {
      try {
        if (!this.#hasPlace) await this.#findPlace()
        // A refusal is reported as the reason why the workflow could not be activated.
        await this.#read({ limit: 1, ...(this.#cursor !== '' && { after: this.#cursor }) })
        this.#readerRefusals = 0
        return
      } catch (error) {
        if (isReaderRefusal(error)) {
          await this.#afterReaderRefusal(error)
          continue
        }
        // A first start with the latest events would lose the events that come until `run` knows where to begin. In all
        // other cases `run` tries again.
        if (!this.#hasPlace && cursor === undefined && this.#startsWithLatest()) throw this.#apiError(error)
        return
      }
    }
  }

  /** Waits before another attempt. @throws NodeOperationError after `MAX_READER_REFUSALS` */
  async #afterReaderRefusal(error: unknown): Promise<void> {
    this.#readerRefusals += 1
    if (this.#readerRefusals >= MAX_READER_REFUSALS) throw this.#tooManyReaders()
    await sleep(retryAfterMsOf(error) ?? PAUSE_AFTER_ERROR_MS)
  }

  #apiError(error: unknown): NodeApiError {
    return new NodeApiError(this.#context.getNode(), error as JsonObject)
  }

  #tooManyReaders(): NodeOperationError {
    // n8n's list of workflows shows only the message.
    return new NodeOperationError(
      this.#context.getNode(),
      'Five others already read the events of this Pombal instance. Use one Pombal Trigger that starts the other workflows ' +
        'with "Execute Workflow", or use Pombal Webhook Trigger.',
      { description: 'Every active Pombal Trigger counts, and every other program that reads the feed.' },
    )
  }

  /** Continues with the stored cursor. A cursor of another instance is dropped. */
  async #findPlace(): Promise<void> {
    const stored = this.#context.getWorkflowStaticData('node')
    const { id, eventId } = await this.#findInstance()
    // Earlier versions stored no instance.
    const isOwn = typeof stored.cursor === 'string' && (stored.instanceId === undefined || stored.instanceId === id)
    const isNew = !isOwn && this.#startsWithLatest()
    this.#cursor = isOwn ? (stored.cursor as string) : isNew ? await this.#latest() : ''
    if (isNew) stored.eventId = eventId
    else if (!isOwn) delete stored.eventId
    // Earlier versions stored no event.
    this.#startedUntil = this.#cursor === '' && typeof stored.eventId === 'string' ? stored.eventId : ''
    stored.instanceId = id
    stored.cursor = this.#cursor
    this.#hasPlace = true
  }

  /** The instance of the credential, and an event ID that sorts before those of all events recorded from now on. */
  async #findInstance(): Promise<{ id: string; eventId: string }> {
    const { body, headers } = (await callPombal(this.#context, '/v1/instance', { returnFullResponse: true })) as {
      body: { data: { id: string } }
      headers: Record<string, unknown>
    }
    // The service's clock, cut to the second, because n8n's clock may be ahead. A proxy may have removed the header.
    const at = Date.parse(String(headers.date))
    return { id: body.data.id, eventId: idAt(Number.isNaN(at) ? Date.now() : at) }
  }

  #startsWithLatest(): boolean {
    return this.#context.getNodeParameter('startWith') === 'latest'
  }

  /** Reads events until the trigger is stopped. */
  async run(): Promise<void> {
    while (!this.#isStopped) {
      try {
        if (!this.#hasPlace) await this.#findPlace()
        await this.#readPage()
        this.#readerRefusals = 0
      } catch (error) {
        if (!this.#isStopped) await this.#recover(error)
      }
    }
  }

  async #recover(error: unknown): Promise<void> {
    const status = statusOf(error)
    if (status === CURSOR_EXPIRED) {
      this.#context.logger.warn(
        'Pombal erased unread events, Pombal was restored from a backup, or the credential belongs to another instance.',
      )
      // Begins with the oldest event if it is the same instance, otherwise as configured.
      this.#context.getWorkflowStaticData('node').cursor = ''
      this.#hasPlace = false
    } else if (status !== null && PERMANENT.has(status)) {
      this.#fail(this.#apiError(error))
    } else if (isReaderRefusal(error)) {
      await this.#afterReaderRefusal(error).catch(tooManyReaders => this.#fail(tooManyReaders as Error))
    } else {
      this.#context.logger.warn(`The events of Pombal cannot be read, trying again: ${(error as Error).message}`)
      await sleep(retryAfterMsOf(error) ?? PAUSE_AFTER_ERROR_MS)
    }
  }

  /** n8n shows the error, and activates the workflow again later. */
  #fail(error: Error): void {
    this.stop()
    this.#context.emitError(error)
  }

  /** Waits for one event, and leaves the stored cursor as it is. */
  async readOne(): Promise<void> {
    try {
      let after = await this.#latest()
      for (;;) {
        const { data, nextCursor } = await this.#poll(after)
        const event = data.find(({ body }) => this.#kinds.has(body.event))
        if (event !== undefined) {
          this.#context.emit([[{ json: jsonOf(event) }]])
          return
        }
        after = nextCursor
      }
    } catch (error) {
      if (!this.#isStopped) throw isReaderRefusal(error) ? this.#tooManyReaders() : this.#apiError(error)
    }
  }

  async #readPage(): Promise<void> {
    const { data, nextCursor } = await this.#poll(this.#cursor)
    for (const event of data) {
      if (this.#isStopped) return
      if (this.#kinds.has(event.body.event) && event.id > this.#startedUntil) await this.#start(event)
      this.#cursor = event.cursor
    }
    this.#cursor = nextCursor
  }

  /** Resolves when the run has ended. A failed run is in n8n's list of executions. */
  async #start(event: FeedEvent): Promise<void> {
    const stored = this.#context.getWorkflowStaticData('node')
    stored.cursor = this.#cursor
    stored.eventId = event.id
    const ended = this.#context.helpers.createDeferredPromise<IRun>()
    const { id } = this.#context.getWorkflow()
    // n8n does not start a second run with the same key.
    const key = `pombal-${id ?? ''}-${this.#context.getNode().id}-${event.id}`
    this.#context.emit([[{ json: jsonOf(event) }]], undefined, ended, key)
    await ended.promise
  }

  async #latest(): Promise<string> {
    const { nextCursor } = await this.#read({ after: 'latest', limit: 1 })
    return nextCursor
  }

  /** Waits for events, and before that until `POLL_EVERY_MS` after the last poll. */
  async #poll(after: string): Promise<Page> {
    const pauseMs = this.#polledAt + POLL_EVERY_MS - performance.now()
    if (pauseMs > 0) await sleep(pauseMs)
    this.#stopping.signal.throwIfAborted()
    this.#polledAt = performance.now()
    const [kind, ...others] = this.#kinds
    return this.#read({
      limit: PAGE,
      wait: WAIT_SECONDS,
      ...(after !== '' && { after }),
      ...(others.length === 0 && kind !== undefined && { event: kind }),
    })
  }

  async #read(qs: IDataObject): Promise<Page> {
    return (await callPombal(this.#context, '/v1/events', {
      qs,
      timeout: TIMEOUT_MS,
      abortSignal: this.#stopping.signal,
    })) as Page
  }
}

function isReaderRefusal(error: unknown): boolean {
  return refusalOf(error).code === 'too_many_readers'
}

/** Sorts before the IDs of events from this moment on, and after those of earlier events. @param at in milliseconds */
function idAt(at: number): string {
  const digits = [...at.toString(32).padStart(TIME_DIGITS, '0')].map(digit => DIGITS[Number.parseInt(digit, 32)])
  return `evt_${digits.join('')}`
}

/** The event as a webhook has it, with its ID, by which a workflow can recognise a repetition. */
function jsonOf({ id, body }: FeedEvent): IDataObject {
  return { id, ...body }
}

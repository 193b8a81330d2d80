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
  sleep,
} from 'n8n-workflow'
import { EVENTS_PROPERTY } from '../shared/event-kinds'
import { CREDENTIALS, callForData, callPombal, statusOf } from '../shared/request'

/** How long the service holds a poll without events. */
const WAIT_SECONDS = 25
/** Beyond it the connection is taken to be dead. */
const TIMEOUT_MS = 40_000
const PAGE = 50
const PAUSE_AFTER_ERROR_MS = 5_000
/** Another attempt does not help: the token was replaced, may not read events, or the address is wrong. */
const PERMANENT = new Set([401, 403, 404])
const CURSOR_EXPIRED = 410

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
 * n8n stores the static data when a workflow starts. It then holds the cursor of the last event whose run has ended, so an event
 * is never lost. After a restart of n8n the last one is read once more. n8n recognises it by its key, as long as it has the run.
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
  #isStopped = false
  /** Whether `#cursor` is one of the instance that the credential names now. */
  #hasPlace = false
  /** Of the last event whose run has ended. Empty: before the oldest event. */
  #cursor = ''

  constructor(context: ITriggerFunctions) {
    this.#context = context
    this.#kinds = new Set(context.getNodeParameter('events', []) as string[])
  }

  /** A poll that is open is answered within `WAIT_SECONDS`, and ignored. */
  stop(): void {
    this.#isStopped = true
  }

  /** n8n stores the static data after the activation, so events that come before the first run are not lost either. */
  async begin(): Promise<void> {
    const { cursor } = this.#context.getWorkflowStaticData('node')
    try {
      await this.#findPlace()
    } catch (error) {
      // Otherwise nothing is lost by a later start, and `run` repeats it.
      if (cursor === undefined && this.#startsWithLatest())
        throw new NodeApiError(this.#context.getNode(), error as JsonObject)
    }
  }

  /** Continues with the stored cursor. A cursor of another instance is dropped. */
  async #findPlace(): Promise<void> {
    const stored = this.#context.getWorkflowStaticData('node')
    const { id } = await callForData<{ id: string }>(this.#context, '/v1/instance')
    // Earlier versions stored no instance.
    const isOwn = typeof stored.cursor === 'string' && (stored.instanceId === undefined || stored.instanceId === id)
    this.#cursor = isOwn ? (stored.cursor as string) : this.#startsWithLatest() ? await this.#latest() : ''
    stored.instanceId = id
    stored.cursor = this.#cursor
    this.#hasPlace = true
  }

  #startsWithLatest(): boolean {
    return this.#context.getNodeParameter('startWith') === 'latest'
  }

  /** Until the trigger is stopped. */
  async run(): Promise<void> {
    while (!this.#isStopped) {
      try {
        if (!this.#hasPlace) await this.#findPlace()
        await this.#readPage()
      } catch (error) {
        if (this.#isStopped) return
        const status = statusOf(error)
        if (status === CURSOR_EXPIRED) {
          this.#context.logger.warn(
            'Pombal erased events that were not read yet, was restored from a backup, or has another instance.',
          )
          // With the oldest event if it is the same instance, otherwise as configured.
          this.#context.getWorkflowStaticData('node').cursor = ''
          this.#hasPlace = false
        } else if (status !== null && PERMANENT.has(status)) {
          this.stop()
          // n8n shows it, and activates the workflow again later.
          this.#context.emitError(new NodeApiError(this.#context.getNode(), error as JsonObject))
        } else {
          this.#context.logger.warn(`The events of Pombal cannot be read, trying again: ${(error as Error).message}`)
          await sleep(PAUSE_AFTER_ERROR_MS)
        }
      }
    }
  }

  /** Waits for one event, and leaves the stored cursor as it is. */
  async readOne(): Promise<void> {
    let after = await this.#latest()
    while (!this.#isStopped) {
      const { data, nextCursor } = await this.#poll(after, WAIT_SECONDS)
      const event = data.find(({ body }) => this.#kinds.has(body.event))
      if (event !== undefined) {
        this.#context.emit([[{ json: jsonOf(event) }]])
        return
      }
      after = nextCursor
    }
  }

  async #readPage(): Promise<void> {
    const { data, nextCursor } = await this.#poll(this.#cursor, WAIT_SECONDS)
    for (const event of data) {
      if (this.#isStopped) return
      if (this.#kinds.has(event.body.event)) await this.#start(event)
      this.#cursor = event.cursor
    }
    this.#cursor = nextCursor
  }

  /** Resolves when the run has ended. A failed run is in n8n's list of executions. */
  async #start(event: FeedEvent): Promise<void> {
    this.#context.getWorkflowStaticData('node').cursor = this.#cursor
    const ended = this.#context.helpers.createDeferredPromise<IRun>()
    const { id } = this.#context.getWorkflow()
    // n8n starts no second run with a key that it has.
    const key = `pombal-${id ?? ''}-${this.#context.getNode().id}-${event.id}`
    this.#context.emit([[{ json: jsonOf(event) }]], undefined, ended, key)
    await ended.promise
  }

  async #latest(): Promise<string> {
    const { nextCursor } = (await callPombal(this.#context, '/v1/events', {
      qs: { after: 'latest', limit: 1 },
    })) as Page
    return nextCursor
  }

  async #poll(after: string, wait: number): Promise<Page> {
    const [kind, ...others] = this.#kinds
    return (await callPombal(this.#context, '/v1/events', {
      qs: {
        limit: PAGE,
        wait,
        ...(after !== '' && { after }),
        ...(others.length === 0 && kind !== undefined && { event: kind }),
      },
      timeout: TIMEOUT_MS,
    })) as Page
  }
}

/** The event as a webhook has it, with its ID, by which a workflow can recognise a repetition. */
function jsonOf({ id, body }: FeedEvent): IDataObject {
  return { id, ...body }
}

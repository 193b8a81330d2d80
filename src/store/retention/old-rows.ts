import { sql } from 'kysely'
import {
  type EventId,
  firstCommandId,
  firstEventId,
  firstMessageId,
  type InstanceId,
  type MessageId,
} from '../../domain/ids.ts'
import type { Core } from '../engine/core.ts'
import type { Statements } from '../engine/statement.ts'

/** Rows that one query examines, so that many rows with an unfinished delivery do not block the process. */
const EXAMINED = 500

/** In this order: an event is erased with its message, or after it. */
const KINDS = ['command', 'message', 'incoming', 'event'] as const
type Kind = (typeof KINDS)[number]

/** The rows of this kind up to `after`, and all rows of the kinds before it, have been examined. */
interface Place {
  instanceId: InstanceId
  kind: Kind
  /** An ID. Empty: no row. */
  after: string
}

/** Rows of one instance that may be erased. */
export interface OldRows {
  instanceId: InstanceId
  kind: Kind
  ids: readonly string[]
}

/** Walks over the old rows of all instances and remembers its place, so that a round never starts the same instance twice. */
export class OldRowsWalk {
  readonly #core: Core
  readonly #queries
  #place: Place | null = null
  /** The instance that is examined or was examined last. */
  #instanceId: InstanceId = ''

  constructor(core: Core) {
    this.#core = core
    this.#queries = prepare(core.statements)
  }

  /** Goes to the next instance unless there are more rows of this one. False: the round has ended, and the next one begins. */
  async proceed(before: number): Promise<boolean> {
    if (this.#place !== null) return true
    const [found] = await this.#core.reader.run(this.#queries.findInstance, {
      ...agesOf(before),
      after: this.#instanceId,
    })
    this.#instanceId = found?.id ?? ''
    if (found !== undefined) this.#place = { instanceId: found.id, kind: KINDS[0], after: '' }
    return found !== undefined
  }

  /** Examines the next rows of the instance. */
  async examine(before: number, limit: number): Promise<OldRows> {
    const { instanceId, kind, after } = this.#place!
    const ages = agesOf(before)
    const rows = await this.#core.reader.run(this.#queries[kind], { ...ages, instanceId, after })
    const erasable = rows.filter(row => Boolean(row.erasable))
    const ids = erasable.slice(0, limit).map(({ id }) => id)
    if (erasable.length > limit) this.#place = { instanceId, kind, after: ids.at(-1)! }
    else if (rows.length === EXAMINED) this.#place = { instanceId, kind, after: rows.at(-1)!.id }
    else {
      const next = KINDS[KINDS.indexOf(kind) + 1]
      this.#place = next === undefined ? null : { instanceId, kind: next, after: '' }
    }
    return { instanceId, kind, ids }
  }

  /** Leaves the instance until the next round. */
  skipInstance(): void {
    this.#place = null
  }
}

/** Rows older than `before` have IDs below the other three values. */
export interface Ages {
  before: number
  beforeMessage: MessageId
  beforeCommand: MessageId
  beforeEvent: EventId
}

export function agesOf(before: number): Ages {
  return {
    before,
    beforeMessage: firstMessageId(before),
    beforeCommand: firstCommandId(before),
    beforeEvent: firstEventId(before),
  }
}

/** Commands are in the table of the messages, with lower IDs. One condition would also select recent commands. */
const IS_OLD = {
  command: ({ beforeCommand }: Ages) => sql<boolean>`m.id < ${beforeCommand}`,
  message: ({ beforeMessage }: Ages) => sql<boolean>`m.id >= 'msg_' and m.id < ${beforeMessage}`,
}

/**
 * The age of a message counts from its last event, because the pace or a lost connection may delay the message for a
 * long time. If a message was scheduled, its scheduled time must be as old, too.
 */
export function isErasable(before: number) {
  return sql<boolean>`m.state <> 'queued' and (m.not_before is null or m.not_before < ${before})
    and (m.last_event_at is null or m.last_event_at < ${before}) and ${hasNoOpenDelivery('m')}`
}

/**
 * Whether no event of the message has an unfinished delivery. The query starts from the events, because not every
 * delivery names its message: those of incoming messages usually do not, and redeliveries never do. `limit` and
 * `cross join` make PostgreSQL and SQLite search the events of each message. Otherwise they would read all events or
 * all unfinished deliveries of the instance.
 */
function hasNoOpenDelivery(message: 'm' | 'i') {
  return sql<boolean>`(select 1 from events as of_message cross join deliveries as d
    where of_message.instance_id = ${sql.ref(`${message}.instance_id`)}
      and of_message.message_id = ${sql.ref(`${message}.id`)}
      and d.instance_id = of_message.instance_id and d.event_id = of_message.id limit 1) is null`
}

/**
 * Whether the received message `i` may be erased. It stays as long as its file, which only the message connects with the
 * person who sent it.
 */
export const IS_ERASABLE_INCOMING = sql<boolean>`(not exists (select 1 from media where media.instance_id = i.instance_id
    and media.id = i.media_id and media.gone_at is null) and ${hasNoOpenDelivery('i')})`

export const EVENT_HAS_NO_OPEN_DELIVERY = sql<boolean>`not exists (select 1 from deliveries as d
    where d.instance_id = e.instance_id and d.event_id = e.id)`

/** The event `e` is not about a message, or its message is erased. */
export const HAS_NO_MESSAGE = sql<boolean>`(e.message_id is null or (
  not exists (select 1 from messages as of_e where of_e.instance_id = e.instance_id and of_e.id = e.message_id)
  and not exists (select 1 from incoming_messages as of_e
    where of_e.instance_id = e.instance_id and of_e.id = e.message_id)))`

interface Part extends Ages {
  instanceId: InstanceId
  after: string
}

function prepare(statements: Statements) {
  const { db } = statements
  const ofMessages = (isOld: (ages: Ages) => ReturnType<(typeof IS_OLD)['command']>) =>
    statements.one((p: Part) =>
      db
        .selectFrom('messages as m')
        .select(['m.id', isErasable(p.before).as('erasable')])
        .where('m.instance_id', '=', p.instanceId)
        .where('m.id', '>', p.after)
        .where(isOld(p))
        .where(sql<boolean>`m.state <> 'queued'`)
        .orderBy('m.id')
        .limit(EXAMINED),
    )
  return {
    command: ofMessages(IS_OLD.command),
    message: ofMessages(IS_OLD.message),
    incoming: statements.one((p: Part) =>
      db
        .selectFrom('incoming_messages as i')
        .select(['i.id', IS_ERASABLE_INCOMING.as('erasable')])
        .where('i.instance_id', '=', p.instanceId)
        .where('i.id', '>', p.after)
        .where('i.id', '<', p.beforeMessage)
        .orderBy('i.id')
        .limit(EXAMINED),
    ),
    event: statements.one((p: Part) =>
      db
        .selectFrom('events as e')
        .select(['e.id', sql<boolean>`${HAS_NO_MESSAGE} and ${EVENT_HAS_NO_OPEN_DELIVERY}`.as('erasable')])
        .where('e.instance_id', '=', p.instanceId)
        .where('e.id', '>', p.after)
        .where('e.id', '<', p.beforeEvent)
        .orderBy('e.id')
        .limit(EXAMINED),
    ),
    findInstance: findInstance(statements),
  }
}

/** The next instance that has old rows, whether they may be erased or not. */
function findInstance(statements: Statements) {
  return statements.one((p: Ages & { after: InstanceId }) =>
    statements.db
      .selectFrom('instances')
      .select('id')
      .where('id', '>', p.after)
      .where(({ or, exists, selectFrom }) =>
        or([
          ...[IS_OLD.command, IS_OLD.message].map(isOld =>
            exists(
              selectFrom('messages as m')
                .select('m.id')
                .whereRef('m.instance_id', '=', 'instances.id')
                .where(isOld(p))
                .where(sql<boolean>`m.state <> 'queued'`),
            ),
          ),
          exists(
            selectFrom('incoming_messages as i')
              .select('i.id')
              .whereRef('i.instance_id', '=', 'instances.id')
              .where('i.id', '<', p.beforeMessage),
          ),
          exists(
            selectFrom('events as e')
              .select('e.id')
              .whereRef('e.instance_id', '=', 'instances.id')
              .where('e.id', '<', p.beforeEvent),
          ),
        ]),
      )
      .orderBy('id')
      .limit(1),
  )
}

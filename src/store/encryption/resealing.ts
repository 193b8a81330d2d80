import { sql } from 'kysely'
import { DEFAULT_ENDPOINT } from '../../domain/events/endpoint.ts'
import type { InstanceId } from '../../domain/ids.ts'
import type { Backend } from '../engine/backend.ts'
import type { RowsStatement, Statement, Statements } from '../engine/statement.ts'
import {
  ALERTS_SCOPE,
  alertAddressPlace,
  credentialPlace,
  endpointSecretPlace,
  mediaKeyPlace,
  mediaSourcePlace,
  OPERATOR_SCOPE,
  operatorSecretPlace,
  proxyPlace,
  type Sealing,
} from './sealing.ts'

/** Rows in one commit. */
const STEP = 500

export interface Resealed {
  /** The number of rows with sealed values. */
  values: number
  /** The number of values that neither key decrypts. They are left unchanged. */
  unreadable: number
}

interface InstanceRow {
  id: InstanceId
  webhook_secret: Uint8Array
  previous_secret: Uint8Array | null
}

interface EndpointRow {
  instance_id: InstanceId
  id: string
  secret: Uint8Array
  previous_secret: Uint8Array | null
}

interface CredentialRow {
  instance_id: InstanceId
  type: string
  id: string
  value: Uint8Array
}

/**
 * Re-encrypts every sealed value in several commits, except passkey answers, which expire soon. Can be repeated: values
 * already under the new key are left unchanged.
 */
export class Resealing {
  readonly #backend: Backend
  readonly #statements: Statements
  readonly #from: Sealing
  readonly #to: Sealing
  readonly #onProgress: (done: number, total: number) => void
  #done = 0
  #unreadable = 0

  constructor(
    backend: Backend,
    statements: Statements,
    from: Sealing,
    to: Sealing,
    onProgress: (done: number, total: number) => void = () => undefined,
  ) {
    this.#backend = backend
    this.#statements = statements
    this.#from = from
    this.#to = to
    this.#onProgress = onProgress
  }

  async run(): Promise<Resealed> {
    const total = await this.#count()
    this.#onProgress(0, total)
    await this.#resealInstances(total)
    await this.#resealEndpoints(total)
    await this.#resealCredentials(total)
    await this.#resealMediaKeys(total)
    await this.#resealMediaSources(total)
    await this.#resealAlertTargets(total)
    await this.#resealProxies(total)
    await this.#resealOperatorEndpoints(total)
    return { values: this.#done, unreadable: this.#unreadable }
  }

  async #count(): Promise<number> {
    const { db } = this.#statements
    const count = sql<{ total: number }>`
      select (select count(*) from instances) + (select count(*) from endpoints) + (select count(*) from credentials)
        + (select count(*) from connections where sealed_proxy is not null) + (select count(*) from media_files) + (select count(*) from media_downloads)
        + (select count(*) from alert_targets) + (select count(*) from operator_endpoints) as total`
    const [row] = await this.#backend.reader.query<{ total: number }>({ compile: () => count.compile(db) })
    return Number(row?.total ?? 0)
  }

  async #resealInstances(total: number): Promise<void> {
    const { db } = this.#statements
    const page = this.#statements.one((after: { id: string }) =>
      db
        .selectFrom('instances')
        .select(['id', 'webhook_secret', 'previous_secret'])
        .where('id', '>', after.id)
        .orderBy('id')
        .limit(STEP),
    )
    const update = this.#statements.update(
      'instances',
      { id: 'text' },
      { webhook_secret: 'blob', previous_secret: 'blob?' },
    )
    const reseal = (row: InstanceRow): InstanceRow => {
      const place = endpointSecretPlace(row.id, DEFAULT_ENDPOINT)
      return {
        id: row.id,
        webhook_secret: this.#reseal(row.id, place, row.webhook_secret),
        previous_secret: row.previous_secret && this.#reseal(row.id, place, row.previous_secret),
      }
    }
    await this.#walk(page, { id: '' }, update, reseal, total)
  }

  async #resealEndpoints(total: number): Promise<void> {
    const { db } = this.#statements
    const page = this.#statements.one((after: { instance_id: string; id: string }) =>
      db
        .selectFrom('endpoints')
        .select(['instance_id', 'id', 'secret', 'previous_secret'])
        .where(eb => eb(eb.refTuple('instance_id', 'id'), '>', eb.tuple(after.instance_id, after.id)))
        .orderBy('instance_id')
        .orderBy('id')
        .limit(STEP),
    )
    const update = this.#statements.update(
      'endpoints',
      { instance_id: 'text', id: 'text' },
      { secret: 'blob', previous_secret: 'blob?' },
    )
    const reseal = (row: EndpointRow): EndpointRow => {
      const place = endpointSecretPlace(row.instance_id, row.id)
      const previous = row.previous_secret && this.#reseal(row.instance_id, place, row.previous_secret)
      return { ...row, secret: this.#reseal(row.instance_id, place, row.secret), previous_secret: previous }
    }
    await this.#walk(page, { instance_id: '', id: '' }, update, reseal, total)
  }

  async #resealCredentials(total: number): Promise<void> {
    const { db } = this.#statements
    const page = this.#statements.one((after: { instance_id: string; type: string; id: string }) =>
      db
        .selectFrom('credentials')
        .select(['instance_id', 'type', 'id', 'value'])
        .where(eb =>
          eb(eb.refTuple('instance_id', 'type', 'id'), '>', eb.tuple(after.instance_id, after.type, after.id)),
        )
        .orderBy('instance_id')
        .orderBy('type')
        .orderBy('id')
        .limit(STEP),
    )
    const update = this.#statements.update(
      'credentials',
      { instance_id: 'text', type: 'text', id: 'text' },
      { value: 'blob' },
    )
    const reseal = (row: CredentialRow): CredentialRow => ({
      ...row,
      value: this.#reseal(row.instance_id, credentialPlace(row.instance_id, row.type, row.id), row.value),
    })
    await this.#walk(page, { instance_id: '', type: '', id: '' }, update, reseal, total)
  }

  /** Re-encrypts only the keys of the files, not the files. */
  async #resealMediaKeys(total: number): Promise<void> {
    const { db } = this.#statements
    const page = this.#statements.one((after: { instance_id: string; id: string }) =>
      db
        .selectFrom('media_files')
        .select(['instance_id', 'id', 'sealed_key'])
        .where(eb => eb(eb.refTuple('instance_id', 'id'), '>', eb.tuple(after.instance_id, after.id)))
        .orderBy('instance_id')
        .orderBy('id')
        .limit(STEP),
    )
    const update = this.#statements.update('media_files', { instance_id: 'text', id: 'text' }, { sealed_key: 'blob' })
    const reseal = (row: { instance_id: string; id: string; sealed_key: Uint8Array }) => ({
      ...row,
      sealed_key: this.#reseal(row.instance_id, mediaKeyPlace(row.instance_id, row.id), row.sealed_key),
    })
    await this.#walk(page, { instance_id: '', id: '' }, update, reseal, total)
  }

  async #resealMediaSources(total: number): Promise<void> {
    const { db } = this.#statements
    const page = this.#statements.one((after: { instance_id: string; media_id: string }) =>
      db
        .selectFrom('media_downloads')
        .select(['instance_id', 'media_id', 'sealed_source'])
        .where(eb => eb(eb.refTuple('instance_id', 'media_id'), '>', eb.tuple(after.instance_id, after.media_id)))
        .orderBy('instance_id')
        .orderBy('media_id')
        .limit(STEP),
    )
    const key = { instance_id: 'text', media_id: 'text' } as const
    const update = this.#statements.update('media_downloads', key, { sealed_source: 'blob' })
    const reseal = (row: { instance_id: string; media_id: string; sealed_source: Uint8Array }) => ({
      ...row,
      sealed_source: this.#reseal(row.instance_id, mediaSourcePlace(row.instance_id, row.media_id), row.sealed_source),
    })
    await this.#walk(page, { instance_id: '', media_id: '' }, update, reseal, total)
  }

  async #resealOperatorEndpoints(total: number): Promise<void> {
    const { db } = this.#statements
    const page = this.#statements.one((after: { id: string }) =>
      db
        .selectFrom('operator_endpoints')
        .select(['id', 'secret', 'previous_secret'])
        .where('id', '>', after.id)
        .orderBy('id')
        .limit(STEP),
    )
    const update = this.#statements.update(
      'operator_endpoints',
      { id: 'text' },
      { secret: 'blob', previous_secret: 'blob?' },
    )
    const reseal = ({ id, secret, previous_secret }: Omit<EndpointRow, 'instance_id'>) => {
      const anew = (sealed: Uint8Array) => this.#reseal(OPERATOR_SCOPE, operatorSecretPlace(id), sealed)
      return { id, secret: anew(secret), previous_secret: previous_secret && anew(previous_secret) }
    }
    await this.#walk(page, { id: '' }, update, reseal, total)
  }

  async #resealProxies(total: number): Promise<void> {
    const { db } = this.#statements
    const page = this.#statements.one((after: { instance_id: string }) =>
      db
        .selectFrom('connections')
        .select(['instance_id', 'sealed_proxy'])
        .where('sealed_proxy', 'is not', null)
        .where('instance_id', '>', after.instance_id)
        .orderBy('instance_id')
        .limit(STEP)
        .$narrowType<{ sealed_proxy: Uint8Array }>(),
    )
    const update = this.#statements.update('connections', { instance_id: 'text' }, { sealed_proxy: 'blob' })
    const reseal = (row: { instance_id: string; sealed_proxy: Uint8Array }) => ({
      ...row,
      sealed_proxy: this.#reseal(row.instance_id, proxyPlace(row.instance_id), row.sealed_proxy),
    })
    await this.#walk(page, { instance_id: '' }, update, reseal, total)
  }

  async #resealAlertTargets(total: number): Promise<void> {
    const { db } = this.#statements
    const page = this.#statements.one((after: { id: string }) =>
      db.selectFrom('alert_targets').select(['id', 'address']).where('id', '>', after.id).orderBy('id').limit(STEP),
    )
    const update = this.#statements.update('alert_targets', { id: 'text' }, { address: 'blob' })
    const reseal = (row: { id: string; address: Uint8Array }) => ({
      id: row.id,
      address: this.#reseal(ALERTS_SCOPE, alertAddressPlace(row.id), row.address),
    })
    await this.#walk(page, { id: '' }, update, reseal, total)
  }

  /** Processes page after page in the order of the primary key, with one commit for each page. */
  async #walk<K extends object, R extends K>(
    page: Statement<K, R>,
    start: K,
    update: RowsStatement<R, unknown>,
    reseal: (row: R) => R,
    total: number,
  ): Promise<void> {
    let after = start
    for (;;) {
      const rows = await this.#backend.reader.run(page, after)
      const last = rows.at(-1)
      if (last === undefined) return
      const tx = await this.#backend.begin()
      try {
        await tx.each(update, rows.map(reseal))
        await tx.commit()
      } catch (error) {
        await tx.rollback()
        throw error
      }
      this.#done += rows.length
      this.#onProgress(this.#done, total)
      after = last
    }
  }

  #reseal(scope: string, place: string, sealed: Uint8Array): Uint8Array {
    const plain = this.#from.tryOpen(scope, place, sealed)
    if (plain !== null) return this.#to.seal(scope, place, plain)
    if (this.#to.tryOpen(scope, place, sealed) === null) this.#unreadable += 1
    return sealed
  }
}

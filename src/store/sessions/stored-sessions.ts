import { sql } from 'kysely'
import type { Core } from '../engine/core.ts'
import { oneByOne } from '../engine/operation.ts'
import type { PanelSessionsTable } from '../engine/schema/panel.ts'
import type { PanelSession, Sessions, WrongKeyCount } from './sessions.ts'

const WRONG_KEY_WINDOW_MS = 60_000
const PASSWORD_KEY = 'panel.password'

/** The panel's sessions and its password. They belong to no instance. */
export class StoredSessions implements Sessions {
  readonly #core: Core
  readonly #operations

  constructor(core: Core) {
    this.#core = core
    this.#operations = operations(core)
  }

  create(session: PanelSession & { tokenDigest: Uint8Array }): Promise<void> {
    return this.#core.write(this.#operations.create, session)
  }

  async find(tokenDigest: Uint8Array, now: number): Promise<PanelSession | null> {
    const { db } = this.#core.statements
    const [row] = await this.#core.reader.query(
      db.selectFrom('panel_sessions').selectAll().where('token_digest', '=', tokenDigest).where('expires_at', '>', now),
    )
    return row === undefined ? null : toSession(row)
  }

  async list(now: number): Promise<PanelSession[]> {
    await this.#core.write(this.#operations.eraseExpired, { now })
    const { db } = this.#core.statements
    const rows = await this.#core.reader.query(
      db.selectFrom('panel_sessions').selectAll().where('expires_at', '>', now).orderBy('created_at', 'desc'),
    )
    return rows.map(toSession)
  }

  end(id: string): Promise<void> {
    return this.#core.write(this.#operations.end, { id })
  }

  async findPasswordHash(): Promise<string | null> {
    const { db } = this.#core.statements
    const [row] = await this.#core.reader.query(db.selectFrom('meta').select('value').where('key', '=', PASSWORD_KEY))
    return row === undefined ? null : Buffer.from(row.value).toString()
  }

  countWrongKey(address: string): Promise<WrongKeyCount> {
    return this.#core.write(this.#operations.countWrongKey, { address })
  }

  setPasswordHash(hash: string | null, keptId: string | null): Promise<void> {
    return this.#core.write(this.#operations.setPassword, { hash, keptId })
  }
}

function operations({ statements }: Core) {
  const { db, now: clock } = statements
  const noInstance = () => ''

  return {
    create: oneByOne(
      'sessions.create',
      noInstance,
      async (tx, { id, tokenDigest, createdAt, expiresAt, userAgent }: PanelSession & { tokenDigest: Uint8Array }) => {
        const row = {
          id,
          token_digest: tokenDigest,
          created_at: createdAt,
          expires_at: expiresAt,
          user_agent: userAgent,
        }
        await tx.query(db.insertInto('panel_sessions').values(row))
      },
    ),

    eraseExpired: oneByOne('sessions.eraseExpired', noInstance, async (tx, { now }: { now: number }) => {
      await tx.query(db.deleteFrom('panel_sessions').where('expires_at', '<=', now))
    }),

    end: oneByOne('sessions.end', noInstance, async (tx, { id }: { id: string }) => {
      await tx.query(db.deleteFrom('panel_sessions').where('id', '=', id))
    }),

    countWrongKey: oneByOne('sessions.countWrongKey', noInstance, async (tx, { address }: { address: string }) => {
      await tx.query(db.deleteFrom('wrong_keys').where('ends_at', '<=', clock))
      const [row] = await tx.query(
        db
          .insertInto('wrong_keys')
          .values({ address, ends_at: sql`${clock} + ${sql.lit(WRONG_KEY_WINDOW_MS)}`, count: 1 })
          .onConflict(oc => oc.column('address').doUpdateSet(eb => ({ count: eb('wrong_keys.count', '+', 1) })))
          .returning(['count', 'ends_at', clock.as('now')]),
      )
      return { count: row!.count, endsInMs: Math.max(0, row!.ends_at - row!.now) }
    }),

    setPassword: oneByOne(
      'sessions.setPassword',
      noInstance,
      async (tx, { hash, keptId }: { hash: string | null; keptId: string | null }) => {
        await tx.query(db.deleteFrom('meta').where('key', '=', PASSWORD_KEY))
        if (hash !== null) await tx.query(db.insertInto('meta').values({ key: PASSWORD_KEY, value: Buffer.from(hash) }))
        await tx.query(db.deleteFrom('panel_sessions').where('id', '!=', keptId ?? ''))
      },
    ),
  }
}

function toSession(row: PanelSessionsTable): PanelSession {
  return { id: row.id, createdAt: row.created_at, expiresAt: row.expires_at, userAgent: row.user_agent }
}

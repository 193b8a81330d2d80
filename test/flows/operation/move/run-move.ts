import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { queryPostgres } from '../../../databases/query-postgres.ts'
import { killOnExit } from '../../../kill-on-exit.ts'
import { captureLog } from '../../../logs/log-capture.ts'
import { until } from '../../../until.ts'

const PROGRAM = join(import.meta.dirname, '../../../../bin/pombal.js')

/** The tables at which `killAt` can hold the move. */
const HELD = ['meta', 'instances', 'credentials', 'incoming_messages', 'events']

export interface MoveRun {
  code: number | null
  output: string
}

/** Runs `pombal move-to-postgres`. */
export function runMove(env: Record<string, string>): Promise<MoveRun> {
  return startMove(env).ended
}

export function startMove(env: Record<string, string>, onOutput?: (text: string) => void) {
  const child = spawn(process.execPath, [PROGRAM, 'move-to-postgres'], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  killOnExit(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', text => {
      output += text
      captureLog(text)
      onOutput?.(text)
    })
  }
  const ended = new Promise<MoveRun>(resolve => child.once('close', code => resolve({ code, output })))
  return { ended, kill: () => child.kill('SIGKILL') }
}

/** Lets `killAt` hold each statement that inserts into some tables, which must exist. */
export async function installBrake(url: string): Promise<void> {
  await queryPostgres(
    url,
    `create table brake (name text, rows bigint);
    create function brake() returns trigger language plpgsql as $$
      declare present bigint;
      begin
        execute format('select count(*) from %I', tg_table_name) into present;
        if exists (select from brake where name = tg_table_name and present >= rows) then perform pg_sleep(3600); end if;
        return null;
      end $$;
    ${HELD.map(table => `create trigger brake before insert on ${table} for each statement execute function brake();`).join('')}`,
  )
}

/** Runs the move, and kills it while it inserts into a table that has at least this many rows. */
export async function killAt(table: string, rows: number, url: string, env: Record<string, string>): Promise<void> {
  await queryPostgres(url, `insert into brake values ('${table}', ${rows})`)
  const move = startMove(env)
  let early: MoveRun | null = null
  move.ended.then(run => {
    early = run
  })
  await until(`the move to reach ${table}`, async () => {
    if (early !== null) throw new Error(`The move ended before it reached ${table}:\n${early.output}`)
    return (
      (
        await queryPostgres(
          url,
          "select from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()",
        )
      ).length > 0
    )
  })
  move.kill()
  await move.ended
  // PostgreSQL notices the end of a client only when it answers.
  await queryPostgres(
    url,
    `delete from brake;
    select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()`,
  )
}

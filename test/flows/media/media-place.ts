import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { StoreKind } from '../../databases/database.ts'
import { filesIn } from './harness.ts'
import { S3Server } from './s3-server.ts'

/** A storage for the files of a service. */
export interface MediaPlace extends AsyncDisposable {
  /** The settings that make the service use it. */
  env: Record<string, string>
  /** The names of all files in it, including what an interrupted write left. */
  names(): string[]
}

/** The storage that people use with this database: SQLite with a folder, PostgreSQL with a bucket. */
export async function openMediaPlace(store: StoreKind): Promise<MediaPlace> {
  return store === 'sqlite' ? openFolder() : openBucket()
}

export function openFolder(): MediaPlace {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-media-'))
  return {
    env: { MEDIA_URL: pathToFileURL(folder).href },
    names: () => filesIn(folder).map(path => relative(folder, path)),
    async [Symbol.asyncDispose]() {
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export async function openBucket(): Promise<MediaPlace & { server: S3Server }> {
  const server = await new S3Server().listen()
  return {
    server,
    env: {
      MEDIA_URL: `s3://media/pombal?endpoint=${server.url}&region=eu-west-1`,
      AWS_ACCESS_KEY_ID: 'key',
      AWS_SECRET_ACCESS_KEY: 'secret',
    },
    names: () =>
      [...server.objects.keys(), ...[...server.uploads.values()].map(({ key }) => `${key}.partial`)].map(key =>
        key.replace('media/pombal/', ''),
      ),
    [Symbol.asyncDispose]: () => server.close(),
  }
}

import { Type } from 'typebox'
import { newInstanceId } from '../../../domain/ids.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { checkAgain } from '../../check-again.ts'
import type { Api, ApiContext } from '../../context.ts'
import { parseName, tokenDigest } from '../../input.ts'
import { createdInstanceSchema, instanceView, nameSchema } from '../../resources/instance.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { noteForAudit } from '../audit/record-changes.ts'
import { newToken, newWebhookSecret } from '../secrets.ts'
import { orNotFound } from './instance-params.ts'

/** A session with 1,000 pre-keys and as many contacts is about half this size. */
const MAX_BODY_BYTES = 8 * 1024 * 1024
/** A commit with more keys would delay other commits. The command has no limit. */
const MAX_KEYS = 20_000
const EXTENSION = /\.json$/

const bodySchema = Type.Object(
  {
    name: nameSchema,
    files: Type.Record(Type.String(), Type.String(), {
      description:
        'The files of the folder of `useMultiFileAuthState`: the text of each by its name, such as `creds.json`.',
    }),
  },
  { title: 'SessionToImport' },
)

const answerSchema = Type.Object(
  {
    ...createdInstanceSchema.properties,
    keys: Type.Integer({ description: 'How many keys were imported.' }),
    unreadable: Type.Integer({
      description: 'How many keys could not be read, and were left out. They are replaced as they are needed.',
    }),
  },
  { title: 'ImportedInstance', description: 'A stopped instance with the session, and its API token.' },
)

export function importSession(api: Api, context: ApiContext): void {
  const { store, readSession, now } = context
  api.post(
    '/instances/import',
    {
      schema: {
        operationId: 'importSession',
        summary: 'Create an instance from a Baileys session',
        description:
          'Takes over a number that another program has linked. The instance is `stopped` until somebody connects it. ' +
          'Stop the other program for good first: two programs with one session destroy it. At most 8 MiB.',
        tags: ['Instances'],
        body: bodySchema,
        response: { 201: dataOf(answerSchema, 'Created. The token is shown only once.') },
      },
      bodyLimit: MAX_BODY_BYTES,
      config: { refusals: ['invalid_request', 'invalid_session', 'number_linked_here', 'payload_too_large'] },
    },
    async (request, reply) => {
      const name = parseName('name', request.body.name)
      const values = Object.entries(request.body.files)
        .filter(([file]) => EXTENSION.test(file))
        .map(([file, json]) => ({ name: file.replace(EXTENSION, ''), json }))
      const session = await readSession(values)
      if (typeof session === 'string') throw new Refusal('invalid_session', session)
      if (session.keys > MAX_KEYS)
        throw new Refusal('invalid_session', 'It has more than 20,000 keys: use the command import-sessions.')
      // Reading took time, during which the caller may have lost access.
      await checkAgain(context, request)
      const token = newToken()
      const id = newInstanceId()
      noteForAudit(request, { name }, id)
      const { phone, rows, keys, unreadable } = session
      const outcome = await store.transfers.import(
        {
          id,
          name,
          phone,
          rows,
          tokenDigest: Buffer.from(tokenDigest(token), 'hex'),
          webhookSecret: newWebhookSecret(),
          webhookUrl: null,
        },
        now(),
      )
      if (outcome.kind === 'known')
        throw new Refusal(
          'number_linked_here',
          `The number is linked to ${outcome.name} (${outcome.id}): delete that instance first.`,
        )
      const instance = orNotFound(await store.instances.find(id))
      return reply.code(201).send({ data: { ...instanceView(instance), token, keys, unreadable } })
    },
  )
}

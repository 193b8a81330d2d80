import { Button } from '@mantine/core'
import { type UseMutationResult, useQuery, useQueryClient } from '@tanstack/react-query'
import { ApiError, callData } from '../../api/client.ts'
import type { ConnectionCause, LinkPageState } from '../../api/types.ts'
import { useAction } from '../../api/use-action.ts'
import { Problem } from '../../components/feedback/problem.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { useFragment } from '../../components/fragment.ts'
import { useTitle } from '../../components/title.ts'
import type { Words } from '../../i18n/en.ts'
import { useWords } from '../../i18n/i18n.tsx'
import { LanguageMenu, SchemeButton } from '../../shell.tsx'
import { LINKING_FAILURES, Linking } from '../instance/linking.tsx'
import { asksForPasskey, Passkey } from '../instance/passkey.tsx'
import frame from '../sign-in.module.css'
import classes from './link-page.module.css'

const POLL_MS = 1_500
const NO_CODE = { qr: null, pairingCode: null }
/** Causes that the reader of the page can do nothing about. */
const FOR_THE_SENDER: ReadonlySet<ConnectionCause> = new Set([
  'passkey_required',
  'identity_rejected',
  'version_refused',
  'unreachable',
  'proxy_failed',
  'sandbox_off',
  'thread_crashed',
] as const satisfies readonly ConnectionCause[])

/** The linking page, on which somebody who cannot sign in links a number. Opening it changes nothing. */
export function LinkPage() {
  const token = useFragment()
  return <OneLink key={token} token={token} />
}

function OneLink({ token }: { token: string }) {
  const words = useWords()
  const client = useQueryClient()
  const key = ['link-page', token]
  const { data, error, refetch } = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => post('/read', { token }, signal),
    staleTime: 0,
    // One lost answer is not worth a message.
    retry: (failures, failure) => failures === 0 && !isEnd(failure),
    refetchInterval: ({ state }) => (state.data?.linked || isEnd(state.error) ? false : POLL_MS),
  })
  const start = useAction({
    mutationFn: (phone?: string) => post('/start', { token, ...(phone && { phone }) }),
    onMutate: () => ({ since: client.getQueryData<LinkPageState>(key)?.since ?? null }),
    onSuccess: shown => client.setQueryData(key, shown),
  })
  const answer = async (path: string, body?: object) => client.setQueryData(key, await post(path, { token, ...body }))
  useTitle(words.linkPage.title)
  return (
    <main className={frame.page}>
      <div className={frame.tools}>
        <LanguageMenu />
        <SchemeButton />
      </div>
      <section className={classes.card}>
        {isEnd(error) ? (
          <Ended code={error.code} words={words} />
        ) : data?.linked ? (
          <Done shown={data} words={words} />
        ) : (
          <>
            <h1 className={frame.title}>{data?.title ?? words.linkPage.title}</h1>
            {data?.title && <p className={frame.lead}>{words.linkPage.title}</p>}
            {error && <Problem error={error} onRetry={() => void refetch()} />}
            {!data && !error && <Waiting />}
            {data && !data.opened && <Begin start={start} />}
            {data?.opened && (
              // A code may have expired since the last answer.
              <Progress shown={error ? { ...data, ...NO_CODE } : data} start={start} answer={answer} />
            )}
          </>
        )}
      </section>
    </main>
  )
}

type Start = UseMutationResult<LinkPageState, Error, string | undefined, { since: string | null }>

function post(path: string, body: object, signal?: AbortSignal): Promise<LinkPageState> {
  const isChange = path !== '/read'
  return callData<LinkPageState>(path, { base: '/link', method: 'POST', body, isChange, ...(signal && { signal }) })
}

/** The link will not work in this browser again. */
function isEnd(error: Error | null): error is ApiError {
  return error instanceof ApiError && ['link_not_found', 'link_in_use', 'invalid_request'].includes(error.code)
}

function Begin({ start }: { start: Start }) {
  const words = useWords()
  return (
    <>
      <p>{words.linkPage.lead}</p>
      <p className={classes.quiet}>{words.linkPage.meaning}</p>
      <Button size="md" fullWidth onClick={() => start.mutate(undefined)} loading={start.isPending}>
        {words.linkPage.begin}
      </Button>
      <Problem error={start.error} />
    </>
  )
}

interface ProgressProps {
  shown: LinkPageState
  start: Start
  answer(path: string, body?: object): Promise<unknown>
}

function Progress({ shown, start, answer }: ProgressProps) {
  const words = useWords()
  const { state, cause, since } = shown
  // True from the request until the service acts on it.
  const isRequested = start.isPending || (start.isSuccess && since === (start.context?.since ?? start.data.since))
  if (state === 'connecting' || cause === 'first_login') return <Waiting text={words.linkPage.connecting} />
  const connection = { ...shown, state: state ?? ('unlinked' as const) }
  if (asksForPasskey(connection)) {
    return (
      <Passkey
        connection={connection}
        instance={`${shown.title ?? words.linkPage.title} (${window.location.host})`}
        answer={assertion => answer('/passkey', { assertion })}
        confirm={() => answer('/passkey/confirm')}
        cancel={null}
      />
    )
  }
  const failure = cause !== null && LINKING_FAILURES.has(cause) && state !== 'linking' ? textOf(words, cause) : null
  return <Linking connection={connection} connect={start} isRequested={isRequested} failure={failure} />
}

function textOf(words: Words, cause: ConnectionCause): string {
  const remedies: Partial<Record<ConnectionCause, string>> = words.connection.remedies
  return (FOR_THE_SENDER.has(cause) ? undefined : remedies[cause]) ?? words.linkPage.askSender
}

function Done({ shown: { title, returnUrl }, words }: { shown: LinkPageState; words: Words }) {
  return (
    <>
      <h1 className={frame.title}>{words.linkPage.done}</h1>
      {title && <p className={frame.lead}>{title}</p>}
      <p role="status">{words.linkPage.doneText}</p>
      {returnUrl && (
        <Button component="a" href={returnUrl} rel="noreferrer" variant="default" fullWidth>
          {words.linkPage.back}
        </Button>
      )}
    </>
  )
}

function Ended({ code, words }: { code: string; words: Words }) {
  const isElsewhere = code === 'link_in_use'
  return (
    <div role="alert">
      <h1 className={frame.title}>{isElsewhere ? words.linkPage.elsewhere : words.linkPage.gone}</h1>
      <p>{isElsewhere ? words.linkPage.elsewhereText : words.linkPage.goneText}</p>
    </div>
  )
}

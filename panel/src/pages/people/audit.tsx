import { Button } from '@mantine/core'
import { useInfiniteQuery, useMutation } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { callData } from '../../api/client.ts'
import { listPage, NOT_LIVE } from '../../api/queries.ts'
import type { AuditCheck, AuditRecord } from '../../api/types.ts'
import { useMay } from '../../api/use-role.ts'
import { Notice } from '../../components/feedback/notice.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { FilterBar, TextFilter } from '../../components/log/filters.tsx'
import { Empty, PageHead } from '../../components/panels.tsx'
import { Time } from '../../components/time.tsx'
import { useTitle } from '../../components/title.ts'
import type { Words } from '../../i18n/en.ts'
import { useWords } from '../../i18n/i18n.tsx'
import classes from './audit.module.css'

const PAGE_SIZE = 100

export function Audit() {
  const words = useWords()
  const navigate = useNavigate()
  const isOwner = useMay('owner')
  const { by, action, instanceId } = useSearch({ from: '/inside/audit' })
  useTitle(words.audit.title)
  const list = useInfiniteQuery({
    queryKey: ['audit', { by, action, instanceId }],
    queryFn: ({ pageParam, signal }) => {
      const query = { by, action, instanceId, limit: PAGE_SIZE, cursor: pageParam }
      return listPage<AuditRecord>('/audit', query, signal)
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: page => page.nextCursor ?? undefined,
    staleTime: 0,
    meta: NOT_LIVE,
  })
  const records = list.data?.pages.flatMap(page => page.data) ?? []
  const filter = (change: { by?: string | undefined; action?: string | undefined; instanceId?: string | undefined }) =>
    void navigate({ to: '/audit', search: { by, action, instanceId, ...change }, replace: true })
  return (
    <>
      <PageHead
        title={words.audit.title}
        action={
          <Button variant="default" loading={list.isRefetching} onClick={() => void list.refetch()}>
            {words.audit.again}
          </Button>
        }
      >
        {words.audit.hint}
      </PageHead>
      {isOwner && <Check />}
      <FilterBar active={[by, action, instanceId].filter(Boolean).length}>
        <TextFilter
          label={words.audit.who}
          placeholder="admin_key"
          value={by}
          onChange={value => filter({ by: value })}
        />
        <TextFilter
          label={words.audit.action}
          placeholder="replaceToken"
          value={action}
          onChange={value => filter({ action: value })}
        />
        <TextFilter
          label={words.instanceSettings.id}
          placeholder="inst_…"
          value={instanceId}
          onChange={value => filter({ instanceId: value })}
        />
      </FilterBar>
      {list.isPending && <Waiting />}
      {list.error && <Problem error={list.error} onRetry={() => void list.refetch()} />}
      {list.isSuccess && records.length === 0 && <Empty title={words.audit.none} />}
      {records.length > 0 && <Records records={records} />}
      {list.hasNextPage && (
        <Button variant="default" loading={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {words.audit.older}
        </Button>
      )}
    </>
  )
}

function Records({ records }: { records: readonly AuditRecord[] }) {
  const words = useWords()
  return (
    <div className={classes.scroller}>
      <table className={classes.records}>
        <thead>
          <tr>
            {[words.audit.when, words.audit.who, words.audit.action, words.audit.instance, words.audit.address].map(
              name => (
                <th key={name} scope="col">
                  {name}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>
          {records.map(record => (
            <tr key={record.seq}>
              <td>
                <Time at={record.at} />
              </td>
              <td>{nameOf(record, words)}</td>
              <td>
                <code>{record.action}</code> <span className={classes.details}>{detailsOf(record)}</span>
              </td>
              <td>{record.instanceId && <code>{record.instanceId}</code>}</td>
              <td>{record.address}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function nameOf({ by, byName }: AuditRecord, words: Words): string {
  const fixed: Partial<Record<string, string>> = words.audit.fixed
  return byName ?? fixed[by] ?? by
}

function detailsOf({ details }: AuditRecord): string {
  const present = Object.entries(details).filter(([, value]) => value !== null)
  return present.map(([name, value]) => `${name}: ${value}`).join(', ')
}

function Check() {
  const words = useWords()
  const check = useMutation({ mutationFn: () => callData<AuditCheck>('/audit/check') })
  return (
    <div className={classes.check}>
      <Button variant="default" loading={check.isPending} onClick={() => check.mutate()}>
        {words.audit.check}
      </Button>
      <Problem error={check.error} />
      {check.data && check.data.brokenAt === null && (
        <p role="status">
          <strong>{words.audit.intact(check.data.entries)}</strong> {words.audit.noteDigest}{' '}
          <code className={classes.digest}>{check.data.digest}</code>
        </p>
      )}
      {check.data && check.data.brokenAt !== null && (
        <Notice tone="bad" title={words.audit.broken}>
          {words.audit.brokenAt(check.data.brokenAt)} <code className={classes.digest}>{check.data.digest}</code>
        </Notice>
      )}
    </div>
  )
}

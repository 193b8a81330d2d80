import { Button, Modal, Progress } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useState } from 'react'
import { call } from '../../api/client.ts'
import { mediaUsageQuery } from '../../api/queries.ts'
import type { Medium } from '../../api/types.ts'
import { useLog } from '../../api/use-log.ts'
import { useMay } from '../../api/use-role.ts'
import { Confirm } from '../../components/feedback/confirm.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { Cell, LogList } from '../../components/log/log-list.tsx'
import { FilePreview, Thumbnail } from '../../components/media/file-preview.tsx'
import { Empty, PageHead } from '../../components/panels.tsx'
import { Time } from '../../components/time.tsx'
import { useLanguage, useWords } from '../../i18n/i18n.tsx'
import { sizeText } from '../../text/size.ts'
import { useInstance } from '../instance/instance.tsx'
import classes from './files.module.css'

const NO_FILTER = {}

/** The files of an instance, and the space that they use. Operators can erase each of them. */
export function Files() {
  const words = useWords()
  const { language } = useLanguage()
  const instance = useInstance()
  const toast = useToast()
  const client = useQueryClient()
  const mayErase = useMay('operator')
  const [shown, setShown] = useState<Medium | null>(null)
  const [doomed, setDoomed] = useState<Medium | null>(null)
  const log = useLog<Medium>(`files ${instance.id}`, `/instances/${instance.id}/media`, NO_FILTER, instance.id)
  const renderRow = useCallback(
    (medium: Medium) => (
      <FileRow
        medium={medium}
        instanceId={instance.id}
        onShow={() => setShown(medium)}
        onErase={mayErase ? () => setDoomed(medium) : null}
      />
    ),
    [instance.id, mayErase],
  )
  const erase = async () => {
    await call(`/instances/${instance.id}/media/${doomed!.id}`, { method: 'DELETE' })
    toast(words.files.erased)
    void client.invalidateQueries({ queryKey: ['medium', instance.id] })
    void client.invalidateQueries(mediaUsageQuery(instance.id))
  }
  return (
    <>
      <div>
        <PageHead level={2} title={words.files.title}>
          {words.files.lead}
        </PageHead>
        <Usage instanceId={instance.id} />
        <LogList
          log={log}
          label={words.files.title}
          columns={[words.files.name, words.files.type, words.files.state, words.files.when]}
          template="minmax(0, 1fr) minmax(0, 180px) minmax(0, 220px) 150px"
          rowHeight={{ wide: 56, narrow: 84 }}
          renderRow={renderRow}
          empty={<Empty title={words.files.emptyTitle}>{words.files.emptyText}</Empty>}
        />
      </div>
      <Modal
        opened={shown !== null}
        onClose={() => setShown(null)}
        title={<bdi>{shown?.filename ?? words.files.unnamed}</bdi>}
        closeButtonProps={{ 'aria-label': words.common.close }}
      >
        {shown && <FilePreview instanceId={instance.id} medium={shown} />}
      </Modal>
      <Confirm
        opened={doomed !== null}
        onClose={() => setDoomed(null)}
        title={words.files.eraseTitle}
        action={words.files.erase}
        danger
        onConfirm={erase}
      >
        {doomed && (
          <p className={classes.doomed}>
            <bdi>{doomed.filename ?? words.files.unnamed}</bdi>, {sizeText(doomed.size, language)},{' '}
            <Time at={doomed.createdAt} />
          </p>
        )}
        {words.files.eraseText}
      </Confirm>
    </>
  )
}

function Usage({ instanceId }: { instanceId: string }) {
  const words = useWords()
  const { language } = useLanguage()
  const { data: usage, error } = useQuery(mediaUsageQuery(instanceId))
  if (error) return <Problem error={error} />
  if (!usage) return null
  const percent = Math.min(100, Math.round((usage.bytes / Math.max(1, usage.quotaBytes)) * 100))
  return (
    <div className={classes.usage}>
      {words.files.usage(sizeText(usage.bytes, language), sizeText(usage.quotaBytes, language))}
      <Progress value={percent} color={percent > 90 ? 'red' : 'teal'} aria-label={words.files.usageLabel} />
    </div>
  )
}

interface FileRowProps {
  medium: Medium
  instanceId: string
  onShow: () => void
  onErase: (() => void) | null
}

function FileRow({ medium, instanceId, onShow, onErase }: FileRowProps) {
  const words = useWords()
  const { language } = useLanguage()
  const name = medium.filename ?? words.files.unnamed
  const isGone = medium.status === 'gone' || medium.status === 'failed'
  return (
    <>
      <Cell>
        <button type="button" className={classes.name} onClick={onShow} data-row-link="">
          <Thumbnail instanceId={instanceId} medium={medium} />
          <span dir="auto">{name}</span>
        </button>
      </Cell>
      <Cell area="wide">
        <span className={classes.muted}>
          {medium.mimetype}
          <br />
          {sizeText(medium.size, language)}, {medium.direction === 'in' ? words.files.received : words.files.uploaded}
        </span>
      </Cell>
      <Cell>
        <span className={classes.muted}>{words.files.states[medium.status]}</span>{' '}
        {onErase && !isGone && (
          <Button
            size="compact-xs"
            variant="subtle"
            color="red"
            aria-label={words.files.eraseLabel(name)}
            onClick={onErase}
          >
            {words.files.erase}
          </Button>
        )}
      </Cell>
      <Cell area="hidden" label={words.files.when}>
        <span className={classes.muted}>
          <Time at={medium.createdAt} />
        </span>
      </Cell>
    </>
  )
}

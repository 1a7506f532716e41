/* Writes an OTF2 archive with records of every kind: every_record FOLDER KIND, where KIND is random (numbers of all
 * lengths) or shown (definitions once, to which all references are, so that OTF2's program shows them). */
#include <otf2/otf2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static OTF2_FlushType before(void *u, OTF2_FileType t, OTF2_LocationRef l, void *c, bool f) { return OTF2_FLUSH; }
static OTF2_TimeStamp after(void *u, OTF2_FileType t, OTF2_LocationRef l) { return 0; }
static OTF2_FlushCallbacks flush = { before, after };

static void check(OTF2_ErrorCode code) {
    if (code != OTF2_SUCCESS) {
        fprintf(stderr, "every_record: %s\n", OTF2_Error_GetDescription(code));
        exit(1);
    }
}

static bool shown;
static uint64_t written;

/* The next number with at most so many bits: random, short ones as often as long ones, and some undefined ones. */
static uint64_t number(int bits) {
    static uint64_t state = 88172645463325252u;
    if (shown && bits == 32)
        return 0;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    uint64_t mask = bits < 64 ? ((uint64_t)1 << bits) - 1 : UINT64_MAX;
    if (bits > 8 && state % 11 == 0)
        return mask;
    return bits > 8 ? (state & mask) >> state % 60 % bits : state >> 20 & mask;
}

static char *text(void) {
    static char text[400];
    int length = number(8);
    for (int i = 0; i < length; i++)
        text[i] = 'a' + i % 26;
    text[length] = 0;
    return text;
}

static OTF2_Type type;
static OTF2_AttributeValue value;
static uint8_t count;
static OTF2_Type types[4];
static OTF2_MetricValue metrics[4];
static OTF2_AttributeValue values[4];
static OTF2_IoParadigmProperty properties[4];
static uint32_t numbers[4];
static uint64_t members[4];

static OTF2_AttributeValue any_value(OTF2_Type type) {
    OTF2_AttributeValue value;
    memset(&value, 0, sizeof value);
    value.uint64 = number(shown && type >= OTF2_TYPE_STRING ? 32 : 64);
    return value;
}

/* Sets what the next record takes. */
static void next(void) {
    type = 1 + number(8) % 25;
    value = any_value(type);
    count = number(2);
    for (int i = 0; i < 4; i++) {
        types[i] = 1 + number(8) % 25;
        values[i] = any_value(types[i]);
        properties[i] = shown ? 0 : number(2);
        numbers[i] = number(32);
        members[i] = number(64);
    }
}

static void metric(void) {
    static const OTF2_Type of_metrics[] = { OTF2_TYPE_INT64, OTF2_TYPE_UINT64, OTF2_TYPE_DOUBLE };
    for (int i = 0; i < 4; i++) {
        types[i] = of_metrics[number(8) % 3];
        metrics[i].unsigned_int = number(64);
    }
}

static void attributes(OTF2_AttributeList *list) {
    for (int i = number(8) % 4; i > 0; i--) {
        OTF2_Type of = 1 + number(8) % 25;
        OTF2_AttributeList_AddAttribute(list, number(30) * 4 + i, of, any_value(of));
    }
}

#define EVENT(kind, ...) \
    (next(), strcmp(#kind, "Metric") ? (void)0 : metric(), attributes(list), time += number(8) / 200 * number(40), \
     check(OTF2_EvtWriter_##kind(writer, list, time __VA_OPT__(,) __VA_ARGS__)))
#define DEFINE(kind, ...) (next(), check(OTF2_GlobalDefWriter_Write##kind(writer, __VA_ARGS__)))

static void events(OTF2_EvtWriter *writer, OTF2_AttributeList *list) {
    static uint64_t time;
    EVENT(BufferFlush, shown ? time : number(64));
    EVENT(MeasurementOnOff, number(2));
    EVENT(Enter, number(32));
    EVENT(Leave, number(32));
    EVENT(MpiSend, number(32), number(32), number(32), number(64));
    EVENT(MpiIsend, number(32), number(32), number(32), number(64), number(64));
    EVENT(MpiIsendComplete, number(64));
    EVENT(MpiIrecvRequest, number(64));
    EVENT(MpiRecv, number(32), number(32), number(32), number(64));
    EVENT(MpiIrecv, number(32), number(32), number(32), number(64), number(64));
    EVENT(MpiRequestTest, number(64));
    EVENT(MpiRequestCancelled, number(64));
    EVENT(MpiCollectiveBegin);
    EVENT(MpiCollectiveEnd, number(2), number(32), number(32), number(64), number(64));
    EVENT(OmpFork, number(32));
    EVENT(OmpJoin);
    EVENT(OmpAcquireLock, number(32), number(32));
    EVENT(OmpReleaseLock, number(32), number(32));
    EVENT(OmpTaskCreate, number(64));
    EVENT(OmpTaskSwitch, number(64));
    EVENT(OmpTaskComplete, number(64));
    EVENT(Metric, number(32), count, types, metrics);
    EVENT(ParameterString, number(32), number(32));
    EVENT(ParameterInt, number(32), (int64_t)number(64));
    EVENT(ParameterUnsignedInt, number(32), number(64));
    EVENT(RmaWinCreate, number(32));
    EVENT(RmaWinDestroy, number(32));
    EVENT(RmaCollectiveBegin);
    EVENT(RmaCollectiveEnd, number(2), number(2), number(32), number(32), number(64), number(64));
    EVENT(RmaGroupSync, number(2), number(32), number(32));
    EVENT(RmaRequestLock, number(32), number(32), number(64), number(2));
    EVENT(RmaAcquireLock, number(32), number(32), number(64), number(2));
    EVENT(RmaTryLock, number(32), number(32), number(64), number(2));
    EVENT(RmaReleaseLock, number(32), number(32), number(64));
    EVENT(RmaSync, number(32), number(32), number(2));
    EVENT(RmaWaitChange, number(32));
    EVENT(RmaPut, number(32), number(32), number(64), number(64));
    EVENT(RmaGet, number(32), number(32), number(64), number(64));
    EVENT(RmaAtomic, number(32), number(32), number(2), number(64), number(64), number(64));
    EVENT(RmaOpCompleteBlocking, number(32), number(64));
    EVENT(RmaOpCompleteNonBlocking, number(32), number(64));
    EVENT(RmaOpTest, number(32), number(64));
    EVENT(RmaOpCompleteRemote, number(32), number(64));
    EVENT(ThreadFork, number(2), number(32));
    EVENT(ThreadJoin, number(2));
    EVENT(ThreadTeamBegin, number(32));
    EVENT(ThreadTeamEnd, number(32));
    EVENT(ThreadAcquireLock, number(2), number(32), number(32));
    EVENT(ThreadReleaseLock, number(2), number(32), number(32));
    EVENT(ThreadTaskCreate, number(32), number(32), number(32));
    EVENT(ThreadTaskSwitch, number(32), number(32), number(32));
    EVENT(ThreadTaskComplete, number(32), number(32), number(32));
    EVENT(ThreadCreate, number(32), number(64));
    EVENT(ThreadBegin, number(32), number(64));
    EVENT(ThreadWait, number(32), number(64));
    EVENT(ThreadEnd, number(32), number(64));
    EVENT(CallingContextEnter, number(32), number(32));
    EVENT(CallingContextLeave, number(32));
    EVENT(CallingContextSample, number(32), number(32), number(32));
    EVENT(IoCreateHandle, number(32), number(2), number(2), number(2));
    EVENT(IoDestroyHandle, number(32));
    EVENT(IoDuplicateHandle, number(32), number(32), number(2));
    EVENT(IoSeek, number(32), (int64_t)number(64), number(2), number(64));
    EVENT(IoChangeStatusFlags, number(32), number(2));
    EVENT(IoDeleteFile, number(8), number(32));
    EVENT(IoOperationBegin, number(32), number(2), number(2), number(64), number(64));
    EVENT(IoOperationTest, number(32), number(64));
    EVENT(IoOperationIssued, number(32), number(64));
    EVENT(IoOperationComplete, number(32), number(64), number(64));
    EVENT(IoOperationCancelled, number(32), number(64));
    EVENT(IoAcquireLock, number(32), number(2));
    EVENT(IoReleaseLock, number(32), number(2));
    EVENT(IoTryLock, number(32), number(2));
    EVENT(ProgramBegin, number(32), count, numbers);
    EVENT(ProgramEnd, (int64_t)number(64));
    EVENT(NonBlockingCollectiveRequest, number(64));
    EVENT(NonBlockingCollectiveComplete, number(2), number(32), number(32), number(64), number(64), number(64));
    EVENT(CommCreate, number(32));
    EVENT(CommDestroy, number(32));
}

static void definitions(OTF2_GlobalDefWriter *writer) {
    DEFINE(ClockProperties, number(64), number(64), number(64), number(64));
    DEFINE(Paradigm, number(2), number(32), number(2));
    DEFINE(ParadigmProperty, number(2), number(2), type, value);
    DEFINE(IoParadigm, number(8), number(32), number(32), number(2), number(2), count, properties, types, values);
    DEFINE(String, number(32), text());
    DEFINE(Attribute, number(32), number(32), number(32), type);
    DEFINE(SystemTreeNode, number(32), number(32), number(32), number(32));
    DEFINE(LocationGroup, number(32), number(32), number(2), number(32), number(32));
    DEFINE(Location, shown ? 7 : number(64), number(32), number(2), shown ? written : 0, number(32));
    DEFINE(Region, number(32), number(32), number(32), number(32), number(2), number(2), number(2), number(32), number(32),
            number(32));
    DEFINE(Callsite, number(32), number(32), number(32), number(32), number(32));
    DEFINE(Callpath, number(32), number(32), number(32));
    DEFINE(Group, number(32), number(32), number(2), number(2), number(2), count, members);
    DEFINE(MetricMember, number(32), number(32), number(32), number(2), number(2), type, number(2), (int64_t)number(64),
            number(32));
    DEFINE(MetricClass, number(32), count, numbers, number(2), number(2));
    DEFINE(MetricInstance, number(32), number(32), number(64), number(2), number(64));
    DEFINE(Comm, number(32), number(32), number(32), number(32), number(2));
    DEFINE(Parameter, number(32), number(32), number(2));
    DEFINE(RmaWin, number(32), number(32), number(32), number(2));
    DEFINE(MetricClassRecorder, number(32), number(64));
    DEFINE(SystemTreeNodeProperty, number(32), number(32), type, value);
    DEFINE(SystemTreeNodeDomain, number(32), number(2));
    DEFINE(LocationGroupProperty, number(32), number(32), type, value);
    DEFINE(LocationProperty, number(64), number(32), type, value);
    DEFINE(CartDimension, number(32), number(32), number(32), number(2));
    DEFINE(CartTopology, number(32), number(32), number(32), count, numbers);
    DEFINE(CartCoordinate, number(32), number(32), count, numbers);
    DEFINE(SourceCodeLocation, number(32), number(32), number(32));
    DEFINE(CallingContext, number(32), number(32), number(32), number(32));
    DEFINE(CallingContextProperty, number(32), number(32), type, value);
    DEFINE(InterruptGenerator, number(32), number(32), number(2), number(2), (int64_t)number(64), number(64));
    DEFINE(IoFileProperty, number(32), number(32), type, value);
    DEFINE(IoRegularFile, number(32), number(32), number(32));
    DEFINE(IoDirectory, number(32), number(32), number(32));
    DEFINE(IoHandle, number(32), number(32), number(32), number(8), number(2), number(32), number(32));
    DEFINE(IoPreCreatedHandleState, number(32), number(2), number(2));
    DEFINE(CallpathParameter, number(32), number(32), type, value);
    DEFINE(InterComm, number(32), number(32), number(32), number(32), number(32), number(2));
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    shown = !strcmp(argv[2], "shown");
    OTF2_Archive *archive = OTF2_Archive_Open(argv[1], "traces", OTF2_FILEMODE_WRITE, 256 * 1024, 256 * 1024,
                                              OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    check(OTF2_Archive_SetFlushCallbacks(archive, &flush, NULL));
    check(OTF2_Archive_SetSerialCollectiveCallbacks(archive));
    check(OTF2_Archive_SetMachineName(archive, "machine"));
    check(OTF2_Archive_SetProperty(archive, "TEST::NAME", "value", true));
    check(OTF2_Archive_OpenEvtFiles(archive));
    OTF2_EvtWriter *writer = OTF2_Archive_GetEvtWriter(archive, 7);
    OTF2_AttributeList *list = OTF2_AttributeList_New();
    /* More than a chunk. */
    for (int i = 0; i < (shown ? 3 : 300); i++)
        events(writer, list);
    check(OTF2_EvtWriter_GetNumberOfEvents(writer, &written));
    check(OTF2_Archive_CloseEvtWriter(archive, writer));
    check(OTF2_Archive_CloseEvtFiles(archive));
    check(OTF2_Archive_OpenDefFiles(archive));
    OTF2_DefWriter *local = OTF2_Archive_GetDefWriter(archive, 7);
    for (int i = 0; i < 5; i++)
        check(OTF2_DefWriter_WriteClockOffset(local, 1000 * i * i, -(int64_t)number(30), 0.25 * i));
    check(OTF2_Archive_CloseDefWriter(archive, local));
    check(OTF2_Archive_CloseDefFiles(archive));
    OTF2_GlobalDefWriter *global = OTF2_Archive_GetGlobalDefWriter(archive);
    if (!shown)
        check(OTF2_GlobalDefWriter_WriteLocation(global, 7, 0, OTF2_LOCATION_TYPE_CPU_THREAD, written, 0));
    for (int i = 0; i < (shown ? 1 : 120); i++)
        definitions(global);
    check(OTF2_Archive_CloseGlobalDefWriter(archive, global));
    check(OTF2_Archive_Close(archive));
    return 0;
}
